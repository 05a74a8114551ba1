"""Task graphs: work per task, bytes per edge; and the shapes of Mendes (2004)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from fembench.errors import InputError

MIB4 = 4 * 1024 * 1024


@dataclass(frozen=True)
class TaskGraph:
    """A graph of tasks 0 to n-1 in topological order."""

    name: str
    work: tuple[float, ...]  # (n,) seconds on a host of H = 1
    edges: tuple[tuple[int, int, float], ...]  # (from, to, bytes), from < to

    def __post_init__(self) -> None:
        for a, b, size in self.edges:
            if not 0 <= a < b < len(self.work) or size < 0:
                raise InputError(
                    f"{self.name}: edge {a} to {b} of {size:g} bytes: expected 0 <= from < to < tasks"
                )
        if not self.work or min(self.work) < 0:
            raise InputError(f"{self.name}: expected at least one task, and work of 0 or more")

    @property
    def n_tasks(self) -> int:
        return len(self.work)

    @cached_property
    def successors(self) -> tuple[tuple[tuple[int, float], ...], ...]:
        """[task] -> (successor, bytes), in the order of the sends."""
        return tuple(tuple((b, s) for a, b, s in self.edges if a == t) for t in range(self.n_tasks))

    @cached_property
    def predecessors(self) -> tuple[tuple[tuple[int, float], ...], ...]:
        """[task] -> (predecessor, bytes)."""
        return tuple(tuple((a, s) for a, b, s in self.edges if b == t) for t in range(self.n_tasks))


def diamond(k: int, work: float = 1.0, size: float = MIB4) -> TaskGraph:
    """k x k tasks; (i, j) sends to (i+1, j) and (i, j+1)."""
    edges = [
        (i * k + j, a * k + b, size)
        for i in range(k)
        for j in range(k)
        for a, b in ((i + 1, j), (i, j + 1))
        if a < k and b < k
    ]
    return TaskGraph(f"diamond-{k * k}", (work,) * (k * k), tuple(edges))


def fork(n: int, work: float = 1.0, size: float = MIB4) -> TaskGraph:
    """n tasks; the first sends to all others."""
    return TaskGraph(f"fork-{n}", (work,) * n, tuple((0, t, size) for t in range(1, n)))


def join(n: int, work: float = 1.0, size: float = MIB4) -> TaskGraph:
    """n tasks; all others send to the last."""
    return TaskGraph(f"join-{n}", (work,) * n, tuple((t, n - 1, size) for t in range(n - 1)))


def fork_join(n: int, work: float = 1.0, size: float = MIB4) -> TaskGraph:
    """n tasks; the first sends to n - 2, which all send to the last."""
    out = [(0, t, size) for t in range(1, n - 1)]
    return TaskGraph(f"fork-join-{n}", (work,) * n, tuple(out + [(t, n - 1, size) for t in range(1, n - 1)]))


def ring(n: int, work: float = 1.0, size: float = MIB4) -> TaskGraph:
    """n tasks, each sending to the next; the last sends to one
    without work (Mendes 2004, 3.10)."""
    return TaskGraph(f"ring-{n}", (*(work,) * n, 0.0), tuple((t, t + 1, size) for t in range(n)))


SHAPES: dict[str, Callable[[int, float, float], TaskGraph]] = {
    "ring": ring,
    "fork": fork,
    "join": join,
    "diamond": diamond,
    "fork-join": fork_join,
}
USUAL = {"ring": 3, "fork": 10, "join": 10, "diamond": 5, "fork-join": 14}  # Mendes 2004
FEWEST = {"ring": 1, "fork": 2, "join": 2, "diamond": 1, "fork-join": 3}


def shape(name: str, tasks: int, n_bytes: int) -> TaskGraph:
    """The graph of a program with unit work per task; `diamond` of k has k x
    k tasks. Raises InputError."""
    tasks = tasks or USUAL[name]
    if tasks < FEWEST[name]:
        raise InputError(f"{name} of {tasks} tasks: expected at least {FEWEST[name]}")
    return SHAPES[name](tasks, 1.0, float(n_bytes))


def hosts_in_turn(graph: TaskGraph, ranks: int) -> tuple[int, ...]:
    """Task t on rank t modulo ranks; a ring ends on the rank where it began."""
    place = [t % ranks for t in range(graph.n_tasks)]
    if graph.name.startswith("ring"):
        place[-1] = place[0]
    return tuple(place)
