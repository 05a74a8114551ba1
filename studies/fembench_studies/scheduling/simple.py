"""Baseline schedules: round robin, all on the fastest host, CPOP."""

from fembench.model.platform import Platform
from fembench_studies.scheduling.execute import Schedule, makespan
from fembench_studies.scheduling.heft import inputs_ready, upward_ranks
from fembench_studies.scheduling.task_graph import TaskGraph


def round_robin(graph: TaskGraph, platform: Platform) -> Schedule:
    """Task t on host t modulo P, like ranks under mpirun."""
    host = tuple(t % platform.n_hosts for t in range(graph.n_tasks))
    return _expected("round robin", graph, platform, host)


def fastest_host(graph: TaskGraph, platform: Platform) -> Schedule:
    """All tasks on the fastest host."""
    best = min(range(platform.n_hosts), key=lambda p: platform.slowness[p])
    return _expected("fastest host", graph, platform, (best,) * graph.n_tasks)


def _expected(method: str, graph: TaskGraph, platform: Platform, host: tuple[int, ...]) -> Schedule:
    order = tuple(range(graph.n_tasks))
    return Schedule(method, order, host, makespan(graph, platform, order, host))


def cpop(graph: TaskGraph, platform: Platform) -> Schedule:
    """Critical path on the fastest host, other tasks where they finish earliest (Topcuoglu et al. 2002)."""
    up = upward_ranks(graph, platform)
    down = [0.0] * graph.n_tasks
    for t in range(graph.n_tasks):
        for s, size in graph.successors[t]:
            step = graph.work[t] * platform.mean_slowness + platform.mean_message(size)
            down[s] = max(down[s], down[t] + step)
    priority = [u + d for u, d in zip(up, down)]
    critical = _critical_path(graph, priority)
    best = min(range(platform.n_hosts), key=lambda p: platform.slowness[p])
    order, host, finish = [], [0] * graph.n_tasks, [0.0] * graph.n_tasks
    free = [0.0] * platform.n_hosts
    waiting = [len(p) for p in graph.predecessors]
    ready = {t for t in range(graph.n_tasks) if not waiting[t]}
    while ready:
        t = max(ready, key=lambda t: (priority[t], -t))
        ready.remove(t)
        hosts = (best,) if t in critical else range(platform.n_hosts)
        begin = {p: max(free[p], inputs_ready(graph, platform, t, p, host, finish)) for p in hosts}
        finish[t], host[t] = min((begin[p] + graph.work[t] * platform.slowness[p], p) for p in hosts)
        free[host[t]] = finish[t]
        order.append(t)
        for s, _ in graph.successors[t]:
            waiting[s] -= 1
            ready |= {s} if not waiting[s] else set()
    return Schedule("CPOP", tuple(order), tuple(host), max(finish))


def _critical_path(graph: TaskGraph, priority: list[float]) -> set[int]:
    """Tasks from the entry of highest priority along the successors of highest priority."""
    entries = [t for t in range(graph.n_tasks) if not graph.predecessors[t]]
    t = max(entries, key=lambda t: priority[t])
    path = {t}
    while graph.successors[t]:
        t = max((s for s, _ in graph.successors[t]), key=lambda s: priority[s])
        path.add(t)
    return path
