"""The optimal schedule by exhaustive search: a reference for graphs of a few tasks."""

from collections.abc import Iterator
from itertools import product

from fembench.errors import InputError
from fembench.model.platform import Platform
from fembench_studies.scheduling.execute import Schedule, makespan
from fembench_studies.scheduling.task_graph import TaskGraph

MOST_TASKS = 8


def optimum(graph: TaskGraph, platform: Platform) -> Schedule:
    """The best of all assignments in all feasible orders. Raises InputError above MOST_TASKS."""
    if graph.n_tasks > MOST_TASKS:
        raise InputError(f"{graph.n_tasks} tasks: expected at most {MOST_TASKS} to try all schedules")
    orders = list(_orders(graph, ()))
    first = orders[0], (0,) * graph.n_tasks
    found = (makespan(graph, platform, *first), *first)
    for host in product(range(platform.n_hosts), repeat=graph.n_tasks):
        seen = set()
        for order in orders:
            own = tuple(tuple(t for t in order if host[t] == p) for p in range(platform.n_hosts))
            if own in seen:
                continue
            seen.add(own)
            time = makespan(graph, platform, order, host)
            if time < found[0]:
                found = (time, order, host)
    return Schedule("optimum", found[1], found[2], found[0])


def _orders(graph: TaskGraph, done: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    if len(done) == graph.n_tasks:
        yield done
        return
    for t in range(graph.n_tasks):
        if t not in done and all(q in done for q, _ in graph.predecessors[t]):
            yield from _orders(graph, (*done, t))
