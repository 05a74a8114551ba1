"""Task graphs of the small programs, and their makespans under HLogP."""

from collections.abc import Callable, Sequence

from fembench.errors import InputError
from fembench.model.platform import Messages, Platform
from fembench.records.hlogp import MessageCost
from fembench_studies.scheduling.execute import makespan
from fembench_studies.scheduling.task_graph import TaskGraph, diamond, fork, fork_join, join, ring

SHAPES: dict[str, Callable[[int, float, float], TaskGraph]] = {
    "ring": ring,
    "fork": fork,
    "join": join,
    "diamond": diamond,
    "fork-join": fork_join,
}
USUAL = {"ring": 3, "fork": 10, "join": 10, "diamond": 5, "fork-join": 14}  # Mendes 2004


def shape(name: str, tasks: int, n_bytes: int) -> TaskGraph:
    """The graph of a program with unit work per task; `diamond` of k has k x k tasks. Raises InputError."""
    tasks = tasks or USUAL[name]
    least = {"diamond": 1, "ring": 1, "fork-join": 3}.get(name, 2)
    if tasks < least:
        raise InputError(f"{name} of {tasks} tasks: expected at least {least}")
    return SHAPES[name](tasks, 1.0, float(n_bytes))


def hosts_in_turn(graph: TaskGraph, ranks: int) -> tuple[int, ...]:
    """Task t on rank t modulo ranks; a ring ends on the rank where it began."""
    place = [t % ranks for t in range(graph.n_tasks)]
    if graph.name.startswith("ring"):
        place[-1] = place[0]
    return tuple(place)


def messages_of(
    transfer: Callable[[float], float],
    host: Sequence[int],
    edges: Sequence[tuple[int, int]],
    costs: Sequence[tuple[float, float, float]] = (),
) -> Messages:
    """Message costs of transfer(bytes) seconds between ranks and 0 within one; sends do not block.

    `costs`: (Os, L, Or) per edge, instead. A message travels while its send overhead lasts, so L is at least
    the transfer - Os.
    """
    own = {(host[a], host[b]): MessageCost(*cost) for (a, b), cost in zip(edges, costs)}

    def message(size: float, source: int, target: int) -> MessageCost:
        usual = 0.0 if source == target else transfer(size)
        if (source, target) not in own:
            return MessageCost(0.0, usual, 0.0)
        send, latency, receive = own[source, target]
        return MessageCost(send, max(latency, usual - send), receive)

    return message


def interval(
    graph: TaskGraph,
    order: Sequence[int],
    host: Sequence[int],
    unit: Sequence[tuple[float, float]],
    messages: tuple[Messages, Messages],
) -> tuple[float, float]:
    """(low, high) makespan from the (low, high) seconds per task on each rank."""
    ends = []
    for side in (0, 1):
        platform = Platform(tuple(u[side] for u in unit), messages[side])
        ends.append(makespan(graph, platform, order, host))
    return ends[0], ends[1]
