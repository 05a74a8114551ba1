"""The best of several schedules, improved by moving tasks.

No list scheduler is safe: for each there are graphs on which another is more than twice as good. Therefore
all are tried, and compared by their makespan under HLogP.
"""

import random
from dataclasses import replace

from fembench.model.platform import Platform
from fembench_studies.scheduling.execute import Schedule, makespan
from fembench_studies.scheduling.heft import hlogp_heft, latency_heft
from fembench_studies.scheduling.simple import cpop, fastest_host, round_robin
from fembench_studies.scheduling.task_graph import TaskGraph

MOST_TRIED = 4000  # makespans computed while improving
SEED = 5


def candidates(graph: TaskGraph, platform: Platform) -> list[Schedule]:
    """One schedule of each method."""
    methods = (hlogp_heft, latency_heft, cpop, fastest_host, round_robin)
    inserted = latency_heft(graph, platform, insertion=True)
    return [*(method(graph, platform) for method in methods), inserted]


def best(graph: TaskGraph, platform: Platform, *, tries: int = MOST_TRIED) -> Schedule:
    """The best candidate, improved; never worse than any candidate.

    The three best candidates are improved by moves. Then the best schedule is changed at random and improved
    again until the tries are used up.
    """
    left = Tries(tries)
    made = [_executed(graph, platform, s) for s in candidates(graph, platform)]
    made.sort(key=lambda s: s.expected)
    now = [_improved(graph, platform, s, left) for s in _different(made)[:3]]
    found, draw = min(now, key=lambda s: s.expected), random.Random(SEED)
    while left.any and graph.n_tasks > 1:
        order, host = _shaken(graph, platform.n_hosts, found, draw)
        start = _executed(graph, platform, replace(found, order=order, host=host))
        found = min(found, _improved(graph, platform, start, left), key=lambda s: s.expected)
    return found


def _executed(graph: TaskGraph, platform: Platform, schedule: Schedule) -> Schedule:
    """The schedule with its makespan under HLogP."""
    return replace(schedule, expected=makespan(graph, platform, schedule.order, schedule.host))


class Tries:
    """The number of makespans that may still be computed."""

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


def _improved(graph: TaskGraph, platform: Platform, schedule: Schedule, left: Tries) -> Schedule:
    """The schedule after improving moves: a task moved, two exchanged, one earlier or later."""
    order, host, time = schedule.order, schedule.host, schedule.expected
    better = True
    while better:
        better = False
        for new_order, new_host in _neighbours(graph, platform.n_hosts, order, host):
            if not left.any:
                better = False
                break
            found = makespan(graph, platform, new_order, new_host)
            if found < time * (1 - 1e-12):
                order, host, time, better = new_order, new_host, found, True
                break
    plain = schedule.method.removesuffix(", improved")
    method = f"{plain}, improved" if time < schedule.expected else schedule.method
    return Schedule(method, order, host, time)


def _different(made: list[Schedule]) -> list[Schedule]:
    """The first schedule of each assignment of tasks to hosts."""
    seen: dict[tuple[int, ...], Schedule] = {}
    for schedule in made:
        seen.setdefault(schedule.host, schedule)
    return list(seen.values())


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
