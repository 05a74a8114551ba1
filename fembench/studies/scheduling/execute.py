"""A schedule executed under HLogP: overheads occupy the processor; messages are received as they arrive."""

from collections.abc import Sequence
from dataclasses import dataclass

from fembench.model.platform import Platform
from fembench.studies.scheduling.task_graph import TaskGraph


@dataclass(frozen=True)
class Schedule:
    """The host of each task, and the order of tasks."""

    method: str
    order: tuple[int, ...]  # all tasks; a host takes its own in this order
    host: tuple[int, ...]  # [task]
    expected: float  # makespan that the method promises, seconds

    @property
    def hosts_used(self) -> int:
        return len(set(self.host))


def makespan(graph: TaskGraph, platform: Platform, order: Sequence[int], host: Sequence[int]) -> float:
    """Seconds until the last task is done. `order`: each task after its predecessors (Mendes 2004)."""
    busy = [0.0] * platform.n_hosts
    arrival: dict[tuple[int, int], float] = {}
    last = 0.0
    message, slowness = platform.message, platform.slowness
    for t in order:
        p = host[t]
        now = busy[p]
        inputs = sorted(
            (arrival[q, t], message(size, host[q], p).receive) for q, size in graph.predecessors[t]
        )
        for moment, overhead in inputs:
            now = max(now, moment) + overhead
        now += graph.work[t] * slowness[p]
        last = max(last, now)
        for s, size in graph.successors[t]:
            cost = message(size, p, host[s])
            now += cost.send
            arrival[t, s] = now + cost.latency
        busy[p] = now
    return last
