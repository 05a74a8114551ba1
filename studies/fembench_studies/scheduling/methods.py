"""The methods: HEFT under two network models, round robin, and
all tasks on the fastest host.

HEFT takes tasks in order of upward rank, each on the host where it finishes earliest.

HLogP (Mendes 2004, 6.2): a host receives the inputs of a task right before it, in order
of arrival. After the task, time for all its sends is reserved, at first at the largest
cost over all hosts; it shrinks as the receivers become known. The latency model has no
overheads: a message between hosts takes its total time.
"""

from collections.abc import Callable

from fembench_studies.scheduling.execute import Schedule, makespan
from fembench_studies.scheduling.platform import Platform
from fembench_studies.scheduling.task_graph import TaskGraph


def upward_ranks(graph: TaskGraph, platform: Platform) -> list[float]:
    """[task] seconds from its start to the end of the graph, at mean
    costs (Topcuoglu et al. 2002)."""
    rank = [0.0] * graph.n_tasks
    mean = {size: platform.mean_message(size) for _, _, size in graph.edges}
    for t in reversed(range(graph.n_tasks)):
        after = max((mean[size] + rank[s] for s, size in graph.successors[t]), default=0.0)
        rank[t] = graph.work[t] * platform.mean_slowness + after
    return rank


def by_rank(graph: TaskGraph, platform: Platform) -> list[int]:
    """Tasks in descending upward rank; with equal ranks, predecessors first."""
    rank = upward_ranks(graph, platform)
    return sorted(range(graph.n_tasks), key=lambda t: (-rank[t], t))


def hlogp_heft(graph: TaskGraph, platform: Platform) -> Schedule:
    """The modified HEFT of Mendes (2004)."""
    state = _Hlogp(graph, platform)
    order = by_rank(graph, platform)
    for t in order:
        state.place(t, min(range(platform.n_hosts), key=lambda p: (state.finish_on(t, p), p)))
    host = tuple(state.host[t] for t in range(graph.n_tasks))
    return Schedule(tuple(order), host, max(state.finish.values()))


class _Hlogp:
    """The partial schedule."""

    def __init__(self, graph: TaskGraph, platform: Platform) -> None:
        self.graph, self.platform = graph, platform
        self.host: dict[int, int] = {}
        self.finish: dict[int, float] = {}
        self.busy = [0.0] * platform.n_hosts
        self.last: list[int | None] = [None] * platform.n_hosts
        self._largest: dict[tuple[int, float], float] = {}

    def send(self, task: int, to: int, size: float) -> float:
        """Send overhead; while the receiver is unknown, the largest over all hosts."""
        p = self.host[task]
        if to in self.host:
            return self.platform.message(size, p, self.host[to]).send
        return self.largest(p, size)

    def largest(self, host: int, size: float) -> float:
        key = host, size
        if key not in self._largest:
            hosts = range(self.platform.n_hosts)
            self._largest[key] = max(self.platform.message(size, host, j).send for j in hosts)
        return self._largest[key]

    def arrival(self, source: int, t: int, p: int) -> tuple[float, float]:
        """(arrival of the message from `source`, its receive overhead) if t runs on p."""
        now, sends = self.finish[source], iter(self.graph.successors[source])
        s, size = next(sends)
        while s != t:
            now += self.send(source, s, size)
            s, size = next(sends)
        cost = self.platform.message(size, self.host[source], p)
        return now + cost.send + cost.latency, cost.receive

    def finish_on(self, t: int, p: int) -> float:
        """The finish time of t on p."""
        now = self.busy[p]
        for moment, overhead in sorted(self.arrival(q, t, p) for q, _ in self.graph.predecessors[t]):
            now = max(now, moment) + overhead
        return now + self.graph.work[t] * self.platform.slowness[p]

    def place(self, t: int, p: int) -> None:
        """Put t on p and reserve its sends; shrink those of predecessors that
        are last on their hosts."""
        self.finish[t] = self.finish_on(t, p)
        self.host[t] = p
        self.busy[p] = self.finish[t] + sum(self.largest(p, size) for _, size in self.graph.successors[t])
        self.last[p] = t
        for q, _ in self.graph.predecessors[t]:
            if self.last[self.host[q]] == q:
                sends = sum(self.send(q, s, size) for s, size in self.graph.successors[q])
                self.busy[self.host[q]] = self.finish[q] + sends


def latency_heft(graph: TaskGraph, platform: Platform) -> Schedule:
    """HEFT under the latency model: messages occupy no processor."""
    order = by_rank(graph, platform)
    free = [0.0] * platform.n_hosts
    host: dict[int, int] = {}
    finish: dict[int, float] = {}

    def ready(t: int, p: int) -> float:
        """When all inputs of t have arrived on p."""
        delays = {q: platform.message(size, host[q], p).total for q, size in graph.predecessors[t]}
        return max((finish[q] + (host[q] != p) * delay for q, delay in delays.items()), default=0.0)

    for t in order:
        ends = (max(ready(t, p), free[p]) + graph.work[t] * h for p, h in enumerate(platform.slowness))
        finish[t], host[t] = min((end, p) for p, end in enumerate(ends))
        free[host[t]] = finish[t]
    hosts = tuple(host[t] for t in range(graph.n_tasks))
    return Schedule(tuple(order), hosts, max(finish.values()))


def round_robin(graph: TaskGraph, platform: Platform) -> Schedule:
    """Task t on host t modulo P, like ranks under mpirun."""
    host = tuple(t % platform.n_hosts for t in range(graph.n_tasks))
    return _executed(graph, platform, host)


def fastest_host(graph: TaskGraph, platform: Platform) -> Schedule:
    """All tasks on the fastest host."""
    best = min(range(platform.n_hosts), key=lambda p: platform.slowness[p])
    return _executed(graph, platform, (best,) * graph.n_tasks)


def _executed(graph: TaskGraph, platform: Platform, host: tuple[int, ...]) -> Schedule:
    order = tuple(range(graph.n_tasks))
    return Schedule(order, host, makespan(graph, platform, order, host))


METHODS: dict[str, Callable[[TaskGraph, Platform], Schedule]] = {
    "heft": hlogp_heft,
    "latency-heft": latency_heft,
    "turn": round_robin,
    "fastest": fastest_host,
}
