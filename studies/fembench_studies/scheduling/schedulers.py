"""All schedulers, by their names on the command line."""

from collections.abc import Callable
from functools import partial

from fembench.model.platform import Platform
from fembench_studies.scheduling.execute import Schedule
from fembench_studies.scheduling.heft import hlogp_heft, latency_heft
from fembench_studies.scheduling.optimum import MOST_TASKS, optimum
from fembench_studies.scheduling.portfolio import best
from fembench_studies.scheduling.simple import cpop, fastest_host, round_robin
from fembench_studies.scheduling.task_graph import TaskGraph

Method = Callable[[TaskGraph, Platform], Schedule]


METHODS: dict[str, Method] = {
    "heft": hlogp_heft,
    "latency-heft": latency_heft,
    "insertion-heft": partial(latency_heft, insertion=True),
    "cpop": cpop,
    "turn": round_robin,
    "fastest": fastest_host,
    "portfolio": best,
    "optimum": optimum,
}


def usable(graph: TaskGraph, platform: Platform) -> list[str]:
    """The methods that can handle this graph; exhaustive search only for a few tasks on a few hosts."""
    few = graph.n_tasks <= MOST_TASKS and platform.n_hosts**graph.n_tasks <= 1000
    return [name for name in METHODS if name != "optimum" or few]
