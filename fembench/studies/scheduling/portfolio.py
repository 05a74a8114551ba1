"""The best of several schedules under one objective, then improved by moving tasks.

No list scheduler is safe: for each there are graphs on which another is more than twice as good. So all are
made and judged alike, the judge being whatever predicts best: HLogP execution here, or a simulator.
"""

import random
from collections.abc import Callable
from dataclasses import replace

from fembench.model.platform import Platform
from fembench.studies.scheduling.execute import Schedule, makespan
from fembench.studies.scheduling.heft import hlogp_heft, latency_heft
from fembench.studies.scheduling.simple import cpop, fastest_host, round_robin
from fembench.studies.scheduling.task_graph import TaskGraph

Judge = Callable[[tuple[int, ...], tuple[int, ...]], float]  # order, host -> seconds
MOST_LOOKS = 4000  # evaluations while improving
SEED = 5


def candidates(graph: TaskGraph, platform: Platform) -> list[Schedule]:
    """One schedule of each method."""
    inserted = replace(latency_heft(graph, platform, insertion=True), method="HEFT, latency, insertion")
    methods = (hlogp_heft, latency_heft, cpop, fastest_host, round_robin)
    return [*(method(graph, platform) for method in methods), inserted]


def hlogp_judge(graph: TaskGraph, platform: Platform) -> Judge:
    """Makespan under HLogP."""
    return lambda order, host: makespan(graph, platform, order, host)


def best(
    graph: TaskGraph, platform: Platform, judge: Judge | None = None, *, looks: int = MOST_LOOKS
) -> Schedule:
    """The best candidate under `judge`, improved; never worse than any candidate.

    The three best are improved by moves, then shaken and improved again while looks are left.
    """
    decide, left = judge or hlogp_judge(graph, platform), Looks(looks)
    made = [(decide(s.order, s.host), s) for s in candidates(graph, platform)]
    made.sort(key=lambda pair: pair[0])
    now = [_improved(graph, platform.n_hosts, time, s, decide, left) for time, s in _different(made)[:3]]
    found, draw = min(now, key=lambda s: s.expected), random.Random(SEED)
    while left.any and graph.n_tasks > 1:
        order, host = _shaken(graph, platform.n_hosts, found, draw)
        start = replace(found, order=order, host=host)
        again = _improved(graph, platform.n_hosts, decide(order, host), start, decide, left)
        found = min(found, again, key=lambda s: s.expected)
    return found


class Looks:
    """The number of evaluations left."""

    def __init__(self, left: int) -> None:
        self.left = left

    @property
    def any(self) -> bool:
        self.left -= 1
        return self.left >= 0


def _shaken(
    graph: TaskGraph, n_hosts: int, schedule: Schedule, draw: random.Random
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(order, host) with up to three tasks moved at random and, every other time, the order changed."""
    moved = list(schedule.host)
    for t in draw.sample(range(len(moved)), min(3, len(moved))):
        moved[t] = draw.randrange(n_hosts)
    if draw.random() < 0.5:
        return schedule.order, tuple(moved)
    order: list[int] = []
    while len(order) < graph.n_tasks:
        ready = [
            t
            for t in range(graph.n_tasks)
            if t not in order and all(q in order for q, _ in graph.predecessors[t])
        ]
        order.append(draw.choice(ready))
    return tuple(order), tuple(moved)


def _improved(
    graph: TaskGraph, n_hosts: int, time: float, schedule: Schedule, judge: Judge, left: Looks
) -> Schedule:
    order, host, found = improved(graph, n_hosts, schedule.order, schedule.host, time, judge, left)
    plain = schedule.method.removesuffix(", improved")
    return Schedule(f"{plain}, improved" if found < time else schedule.method, order, host, found)


def _different(made: list[tuple[float, Schedule]]) -> list[tuple[float, Schedule]]:
    seen: dict[tuple[int, ...], tuple[float, Schedule]] = {}
    for time, schedule in made:
        seen.setdefault(schedule.host, (time, schedule))
    return list(seen.values())


def improved(
    graph: TaskGraph,
    n_hosts: int,
    order: tuple[int, ...],
    host: tuple[int, ...],
    time: float,
    judge: Judge,
    left: Looks,
) -> tuple[tuple[int, ...], tuple[int, ...], float]:
    """(order, host, seconds) after improving moves: a task moved, two exchanged, one earlier or later."""
    better = True
    while better:
        better = False
        for new_order, new_host in _neighbours(graph, n_hosts, order, host):
            if not left.any:
                return order, host, time
            found = judge(new_order, new_host)
            if found < time * (1 - 1e-12):
                order, host, time, better = new_order, new_host, found, True
                break
    return order, host, time


def _neighbours(graph: TaskGraph, n_hosts: int, order: tuple[int, ...], host: tuple[int, ...]):
    n = graph.n_tasks
    for t in order:
        for p in range(n_hosts):
            if p != host[t]:
                yield order, (*host[:t], p, *host[t + 1 :])
    for a in range(n):
        for b in range(a + 1, n):
            if host[a] != host[b]:
                swapped = list(host)
                swapped[a], swapped[b] = host[b], host[a]
                yield order, tuple(swapped)
    feeds = {(a, b) for a, b, _ in graph.edges}
    for k in range(n - 1):
        for end in range(k + 1, n):
            if (order[k], order[end]) in feeds:
                break
            yield (*order[:k], *order[k + 1 : end + 1], order[k], *order[end + 1 :]), host
