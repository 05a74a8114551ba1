"""The experiments of Mendes (2004) with applications: rings, fork and join, schedules of task graphs.

Times of tasks and costs of messages (Os, L, Or) are the printed ones, on a shorter time scale: the time of a
task here divided by its time in the thesis. Hosts differ by the printed factors H. Chapter 6 does not give
the sizes of its messages; here they cost as much as 4 MiB under LAM-MPI.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

from fembench.records.hlogp import MessageCost
from fembench_studies.layout import source_table
from fembench_studies.scheduling.execute import Schedule
from fembench_studies.scheduling.methods import hlogp_heft, latency_heft, round_robin
from fembench_studies.scheduling.platform import Platform
from fembench_studies.scheduling.task_graph import TaskGraph, diamond, fork_join

printed = functools.partial(source_table, "thesis_001")
MICRO = 1e-6
TASK = 5.05  # seconds of a task in chapter 6
REMOTE = (351304 * MICRO, -350929 * MICRO, 357019 * MICRO)  # Table 5.4, 4 MiB, MPI_Send: Os, L, Or
LOCAL = (10974 * MICRO, 0.0, 10974 * MICRO)  # Table 5.3
H = (26, 26, 40, 42, 26, 26, 40, 40, 40, 40)  # sn02 sn04 jenipapo caju sn16 sn17 n19 … n22 (Table 4.13)
SPEEDS = tuple(round(26 / h, 3) for h in H)
CHILDREN = 8  # of fork and join on other hosts (6.1)
Costs = tuple[float, float, float]
Row = dict[str, str]


@dataclass(frozen=True)
class Ring:
    """Three tasks on three hosts; each sends to the next, the last to the first host (3.10). Seconds."""

    name: str
    tables: str
    tasks: tuple[float, ...]  # (3,)
    costs: tuple[Costs, ...]  # (3,) one per message
    measured: float
    estimated: float

    @property
    def speeds(self) -> tuple[float, ...]:
        """[host] relative speed, from the time of its task, to a hundredth."""
        return tuple(min(1.0, round(self.tasks[0] / t, 2)) for t in self.tasks)


RINGS = {  # name -> table of the time line, its column, table of measured times, its row
    "64 KiB, one site": ("4_24", "iia_uff_uff_us", "4_25", 0),
    "64 KiB, two sites": ("4_24", "iia_uff_puc_us", "4_25", 1),
    "2 MiB, one site": ("4_37", "uff_uff_us", "4_38", 0),
    "2 MiB, two sites": ("4_37", "uff_puc_us", "4_38", 1),
    "2 MiB, one site, LAM": ("5_10", "uff_uff_us", "5_11", 0),
    "2 MiB, two sites, LAM": ("5_10", "uff_sinergia_us", "5_11", 1),
}


def rings() -> list[Ring]:
    """All rings, in the order of the tables."""
    found = []
    for name, (line, column, result, row) in RINGS.items():
        values = [float(r[column]) * MICRO for r in printed(f"table_{line}")][:12]
        said = printed(f"table_{result}")[row]
        found.append(
            Ring(
                name,
                f"{line}, {result}".replace("_", "."),
                tuple(values[0::4]),
                tuple(zip(values[1::4], values[2::4], values[3::4])),
                float(said["measured_us"]) * MICRO,
                float(said["estimated_us"]) * MICRO,
            )
        )
    return found


GRAPHS: dict[str, Callable[[], TaskGraph]] = {
    "diamond": lambda: diamond(5),
    "fork-join": lambda: fork_join(14),
}
METHODS: dict[str, Callable[[TaskGraph, Platform], Schedule]] = {
    "HEFT, HLogP": hlogp_heft,
    "HEFT, latency": latency_heft,
    "round robin": round_robin,
}
# (graph, method) -> row of the printed results
THESIS = {
    ("diamond", "HEFT, HLogP"): 0,
    ("diamond", "HEFT, latency"): 2,
    ("diamond", "round robin"): 3,
    ("fork-join", "HEFT, HLogP"): 4,
    ("fork-join", "HEFT, latency"): 5,
}


def thesis_schedule(graph: str, method: str) -> tuple[float, float]:
    """(predicted, executed) makespan, seconds; nan if the thesis has none."""
    row = THESIS.get((graph, method))
    if row is None:
        return float("nan"), float("nan")
    found = printed("schedules")[row]
    each = (found[f"{what}_makespan_us"] for what in ("predicted", "executed"))
    predicted, executed = (float(text) * MICRO if text else float("nan") for text in each)
    return predicted, executed


def platform(task: tuple[float, ...], scale: float, transfer: float) -> Platform:
    """Hosts on which a task takes task[host] seconds and messages cost the thesis' values times `scale`.

    `transfer`: seconds that a real message takes here, a lower bound for remote messages.
    """
    remote, local = (tuple(scale * part for part in cost) for cost in (REMOTE, LOCAL))

    def message(size: float, source: int, target: int) -> MessageCost:
        if source == target:
            return MessageCost(*local)
        return MessageCost(remote[0], max(remote[1], transfer - remote[0]), remote[2])

    return Platform(task, message)
