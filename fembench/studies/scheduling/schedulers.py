"""All schedulers, by the names that users type."""

from collections.abc import Callable
from dataclasses import replace

from fembench.model.platform import Platform
from fembench.studies.scheduling.execute import Schedule
from fembench.studies.scheduling.heft import hlogp_heft, latency_heft
from fembench.studies.scheduling.optimum import MOST_TASKS, optimum
from fembench.studies.scheduling.portfolio import best
from fembench.studies.scheduling.simple import cpop, fastest_host, round_robin
from fembench.studies.scheduling.task_graph import TaskGraph

Method = Callable[[TaskGraph, Platform], Schedule]


def _inserted(graph: TaskGraph, platform: Platform) -> Schedule:
    return replace(latency_heft(graph, platform, insertion=True), method="HEFT, latency, insertion")


METHODS: dict[str, Method] = {
    "heft": hlogp_heft,
    "latency-heft": latency_heft,
    "insertion-heft": _inserted,
    "cpop": cpop,
    "turn": round_robin,
    "fastest": fastest_host,
    "portfolio": best,
    "optimum": optimum,
}


def usable(graph: TaskGraph, platform: Platform) -> list[str]:
    """The methods for this graph; exhaustive search only for a few tasks on a few hosts."""
    few = graph.n_tasks <= MOST_TASKS and platform.n_hosts**graph.n_tasks <= 1000
    return [name for name in METHODS if name != "optimum" or few]
