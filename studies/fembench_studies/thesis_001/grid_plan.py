"""The schedules of task graphs of Mendes (2004).

Times of tasks and costs of messages (Os, L, Or) are the printed ones, on a shorter time
scale: the time of a task here divided by its time in the thesis. Hosts differ by the
printed factors H. Chapter 6 does not give the sizes of its messages; here they cost as
much as 4 MiB under LAM-MPI.
"""

import functools
from collections.abc import Callable

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
Row = dict[str, str]
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
    """Hosts on which a task takes task[host] seconds and messages cost the
    thesis' values times `scale`.

    `transfer`: seconds that a real message takes here, a lower
    bound for remote messages.
    """
    remote, local = (tuple(scale * part for part in cost) for cost in (REMOTE, LOCAL))

    def message(size: float, source: int, target: int) -> MessageCost:
        if source == target:
            return MessageCost(*local)
        return MessageCost(remote[0], max(remote[1], transfer - remote[0]), remote[2])

    return Platform(task, message)
