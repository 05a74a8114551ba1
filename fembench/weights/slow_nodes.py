"""Which nodes are slow, why, and what one loses by keeping them: from the samples of `fembench nodes`.

Nodes are compared with those of their *kind*: the same processor, number of cores and ranks. The test is
that of `stats.outliers`, for three quantities per node and for each core. A slow node is then measured alone.
If it is as fast as its kind there, its neighbours (or something in passing) disturbed it: it is no outlier.

The cause of a slow node is

    a load       if lost CPU time explains at least half of what it lacks: its ranks had no processor, or
                 others, the hypervisor or a quota took it
    throttling   if its processors counted thermal events
    clock        if its clock rate is lower than that of its kind
    core K       if only some of its cores are slow
    memory       if only its memory is slow
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.base.units import few
from fembench.records.nodes import NodeSamples, NodesLaunch, NodesRecord
from fembench.records.quiet import QUOTA, lost
from fembench.stats.outliers import FEWEST_ALIKE, RELEVANT, Ratios, from_deviations, ratios_alike

Array = npt.NDArray[np.float64]
Quantity = Literal["one core", "all cores", "memory"]
QUANTITIES: tuple[Quantity, ...] = ("one core", "all cores", "memory")
HALF = 0.5  # of what a node lacks that a cause must explain
LOWER = 0.03  # relative difference of clock rates that counts
MOST_CORES = 4  # named in a cause


class KindKey(NamedTuple):
    """What nodes of a kind have in common."""

    cpu_model: str
    cores: int  # that it has: a quota does not make a node of another kind
    ranks: int


@dataclass(frozen=True)
class NodeKind:
    """Nodes that should be equally fast."""

    key: KindKey
    nodes: tuple[int, ...]  # indices into the nodes of the first launch
    typical: dict[Quantity, float]  # flop/s, flop/s, byte/s of a node
    clock: float  # Hz; 0: unknown

    @property
    def compared(self) -> bool:
        return len(self.nodes) >= FEWEST_ALIKE


class NodeLosses(NamedTuple):
    """CPU time that a node lost beyond what is typical of its kind."""

    percent: dict[str, float]  # who took it -> percent
    quota: float  # CPUs; 0: none


@dataclass(frozen=True)
class NodeRatio:
    """A quantity of a node over that of the typical node of its kind, with its joint interval."""

    ratio: float
    low: float
    high: float
    slow: bool
    running: float  # the ratio while ranks had a processor
    busy: float  # the fraction of time in which they had, over the typical one
    alone: float | None = None  # the ratio in the second launch


@dataclass(frozen=True)
class NodeVerdict:
    """What was found about one node."""

    name: str
    kind: int
    verdict: Literal["normal", "slow", "disturbed", "not compared"]
    cause: str  # "" unless slow or disturbed
    ratios: dict[Quantity, NodeRatio]  # {}: too few nodes of its kind
    cores: dict[int, NodeRatio]  # its slow cores
    pace: float  # speed of its slowest rank, over the typical one; 1 unless slow
    capacity: float  # of all its ranks, over the typical one; 1 unless slow


@dataclass(frozen=True)
class KeepingCosts:
    """Fractions of what all nodes would do if none were slow, that are lost."""

    equal: float  # keep the slow ones, with equal shares: all others wait
    weighted: float  # keep them, with weighted shares
    left_out: float


@dataclass(frozen=True)
class NodesFindings:
    """What the samples of all nodes say."""

    kinds: tuple[NodeKind, ...]
    nodes: tuple[NodeVerdict, ...]
    costs: KeepingCosts | None  # None: no slow node
    rounds: int
    synthetic: str

    def named(self, verdict: str) -> list[NodeVerdict]:
        """The nodes with this verdict."""
        return [node for node in self.nodes if node.verdict == verdict]


class _Compared(NamedTuple):
    """One quantity of the nodes (or cores) of a kind."""

    all: Ratios
    running: Array
    busy: Array

    def of(self, k: int, alone: float | None) -> NodeRatio:
        ends = (float(x[k]) for x in (self.all.ratio, self.all.low, self.all.high))
        ratio, low, high = ends
        slow = bool(self.all.slow[k])
        return NodeRatio(ratio, low, high, slow, float(self.running[k]), float(self.busy[k]), alone)


def slow_nodes(record: NodesRecord) -> NodesFindings:
    """Verdict and cause for every node of a record."""
    launch = record.first
    kinds = kinds_of(launch)
    tests = sum(_tests(launch, kind) for kind in kinds)
    alone = {node.name: node for node in record.second.nodes} if record.second else {}
    found: dict[int, NodeVerdict] = {}
    for number, kind in enumerate(kinds):
        nodes = [launch.nodes[k] for k in kind.nodes]
        for k, verdict in zip(kind.nodes, _verdicts(number, kind, nodes, launch, tests, alone)):
            found[k] = verdict
    verdicts = tuple(found[k] for k in range(len(launch.nodes)))
    return NodesFindings(
        kinds=kinds,
        nodes=verdicts,
        costs=_costs(kinds, verdicts),
        rounds=launch.rounds,
        synthetic=launch.environment.synthetic,
    )


def differing(found: NodesFindings) -> list[NodeVerdict]:
    """Normal nodes that are not at the typical speed of their kind: about half of them are slow."""
    nodes = [node for node in found.nodes if node.verdict == "normal"]
    return [node for node in nodes if any(map(_apart, node.ratios.values()))]


def _apart(one: NodeRatio) -> bool:
    return one.high < 1 - RELEVANT or one.low > 1 + RELEVANT


def node_speeds(found: NodesFindings) -> dict[str, float]:
    """{node: speed of its ranks relative to the fastest node}; {} unless all nodes were compared, and those
    that are not slow are equal.

    A node that is not slow has the typical speed of its kind.
    """
    if differing(found) or not all(node.ratios for node in found.nodes):
        return {}
    kinds = [found.kinds[node.kind] for node in found.nodes]
    ranks = [kind.typical["all cores"] / kind.key.ranks for kind in kinds]
    speeds = {node.name: speed * node.capacity for node, speed in zip(found.nodes, ranks)}
    return {name: speed / max(speeds.values()) for name, speed in speeds.items()}


def kinds_of(launch: NodesLaunch) -> tuple[NodeKind, ...]:
    """The kinds of nodes, in the order in which they occur."""
    members: dict[KindKey, list[int]] = {}
    for k, node in enumerate(launch.nodes):
        host = launch.environment.hosts[node.host]
        cores = node.facts.physical_cores or host.cores
        members.setdefault(KindKey(host.cpu_model, cores, node.ranks), []).append(k)
    return tuple(_kind(key, found, launch.nodes) for key, found in members.items())


def _kind(key: KindKey, members: Sequence[int], nodes: Sequence[NodeSamples]) -> NodeKind:
    chosen = [nodes[k] for k in members]
    typical = {q: _typical(np.array([_rates(node, q) for node in chosen])) for q in QUANTITIES}
    clocks = [float(np.median(node.clock)) for node in chosen if node.clock]
    return NodeKind(key, tuple(members), typical, float(np.median(clocks)) if clocks else 0.0)


def _typical(rates: Array) -> float:
    """The typical rate in (n, rounds) samples."""
    return float(np.exp(np.median(np.median(np.log(rates), axis=1))))


def _rates(node: NodeSamples, quantity: Quantity) -> Array:
    """(rounds,) samples of a quantity."""
    if quantity == "one core":
        return np.asarray(np.median(node.cores, axis=0))
    return np.array(node.together if quantity == "all cores" else node.memory)


def _busy(node: NodeSamples, quantity: Quantity) -> Array:
    """(rounds,) fractions of the time with a processor."""
    if quantity == "one core":
        return np.asarray(np.median(node.cores_busy, axis=0))
    return np.array(node.together_busy if quantity == "all cores" else node.memory_busy)


def _tests(launch: NodesLaunch, kind: NodeKind) -> int:
    """Intervals that must hold together: of every quantity and every core that are compared."""
    cores = kind.key.ranks * len(kind.nodes)
    if kind.compared:
        return len(QUANTITIES) * len(kind.nodes) + cores
    return cores if kind.key.ranks >= FEWEST_ALIKE else 0


def _verdicts(
    number: int,
    kind: NodeKind,
    nodes: Sequence[NodeSamples],
    launch: NodesLaunch,
    tests: int,
    alone: Mapping[str, NodeSamples],
) -> Iterator[NodeVerdict]:
    """The verdicts on the nodes of one kind."""
    compared = {q: _compare_nodes(nodes, q, tests) for q in QUANTITIES} if kind.compared else {}
    cores = _compare_cores(nodes, tests)
    losses = _losses(nodes, launch)
    for k, node in enumerate(nodes):
        again = alone.get(node.name)
        ratios = {q: one.of(k, _alone(again, q, kind)) for q, one in compared.items()}
        slow_cores = _slow_cores(k, node, nodes, cores, again)
        yield _verdict(number, kind, node, ratios, slow_cores, losses[k])


def _losses(nodes: Sequence[NodeSamples], launch: NodesLaunch) -> list[NodeLosses]:
    """Of each node of a kind. Nodes that share a host have no counters of their own: none is known."""
    on_host = Counter(node.host for node in launch.nodes)
    hosts = [launch.environment.hosts[node.host] for node in nodes]
    found = [lost(host) if on_host[node.host] == 1 else {} for node, host in zip(nodes, hosts)]
    takers = {who for one in found for who in one}
    typical = {who: float(np.median([one.get(who, 0.0) for one in found])) for who in takers}
    return [
        NodeLosses({who: percent - typical[who] for who, percent in one.items()}, host.cpu_quota)
        for one, host in zip(found, hosts)
    ]


def _compare_nodes(nodes: Sequence[NodeSamples], quantity: Quantity, tests: int) -> _Compared:
    rates = np.array([_rates(node, quantity) for node in nodes])
    busy = np.array([_busy(node, quantity) for node in nodes])
    share = np.median(busy, axis=1)
    return _Compared(
        ratios_alike(rates, tests), ratios_alike(rates / busy, tests).ratio, share / np.median(share)
    )


def _compare_cores(nodes: Sequence[NodeSamples], tests: int) -> _Compared | None:
    """Every core against the same one of other nodes, or, with too few of them, against its node's cores.

    Entries are [node * ranks + core]. None: nothing to compare with.
    """
    rates = np.array([node.cores for node in nodes])  # (n, C, rounds)
    busy = np.array([node.cores_busy for node in nodes])
    axis = 0 if len(nodes) >= FEWEST_ALIKE else 1
    if rates.shape[axis] < FEWEST_ALIKE:
        return None
    shape = (-1, rates.shape[2])
    logs, running = np.log(rates), np.log(rates / busy)
    share = np.median(busy, axis=2)
    return _Compared(
        from_deviations((logs - np.median(logs, axis=axis, keepdims=True)).reshape(shape), tests),
        np.exp(np.median((running - np.median(running, axis=axis, keepdims=True)).reshape(shape), axis=1)),
        (share / np.median(share, axis=axis, keepdims=True)).reshape(-1),
    )


def _slow_cores(
    k: int,
    node: NodeSamples,
    nodes: Sequence[NodeSamples],
    cores: _Compared | None,
    again: NodeSamples | None,
) -> dict[int, NodeRatio]:
    """The slow cores of the k-th node."""
    if cores is None:
        return {}
    first = k * node.ranks
    slow = [core for core in range(node.ranks) if cores.all.slow[first + core]]
    alike = len(nodes) >= FEWEST_ALIKE
    found = {}
    for core in slow:
        ratio = None
        if again is not None:
            others = [one.cores[core] for one in nodes] if alike else list(again.cores)
            ratio = _median_rate(again.cores[core]) / _typical(np.array(others))
        found[core] = cores.of(first + core, ratio)
    return found


def _median_rate(rates: Sequence[float] | Array) -> float:
    return float(np.exp(np.median(np.log(rates))))


def _alone(again: NodeSamples | None, quantity: Quantity, kind: NodeKind) -> float | None:
    """The ratio of a node measured alone to the typical node of the first launch."""
    return _median_rate(_rates(again, quantity)) / kind.typical[quantity] if again else None


def _verdict(
    number: int,
    kind: NodeKind,
    node: NodeSamples,
    ratios: dict[Quantity, NodeRatio],
    cores: dict[int, NodeRatio],
    losses: NodeLosses,
) -> NodeVerdict:
    slow = [one for one in (*ratios.values(), *cores.values()) if one.slow]
    verdict: Literal["normal", "slow", "disturbed", "not compared"]
    verdict = "normal" if ratios else "not compared"
    cause, pace, capacity = "", 1.0, 1.0
    if slow:
        lasting = [one for one in slow if one.alone is None or one.alone < 1 - RELEVANT]
        verdict = "slow" if lasting else "disturbed"
        cause = _cause(kind, node, ratios, cores, losses)
    if verdict == "slow":
        pace = min(one.ratio for one in slow)
        of_node = [one.ratio for one in ratios.values() if one.slow]
        capacity = min([*of_node, 1 - sum(1 - one.ratio for one in cores.values()) / node.ranks])
    return NodeVerdict(node.name, number, verdict, cause, ratios, cores, pace, capacity)


def _cause(
    kind: NodeKind,
    node: NodeSamples,
    ratios: Mapping[Quantity, NodeRatio],
    cores: Mapping[int, NodeRatio],
    losses: NodeLosses,
) -> str:
    """Why a node is slow, in a few words."""
    slow = {q: one for q, one in ratios.items() if one.slow}
    if 0 < len(cores) <= node.ranks / 2 or not slow:
        return _cause_of_cores(node, cores)
    quantity = next(q for q in ("all cores", "one core", "memory") if q in slow)
    load = _load(slow[quantity], node.ranks, losses)
    if load:
        return load
    if quantity == "memory":
        return "memory slow, cores normal"
    where = _where(slow)
    if node.throttled > 0:
        return f"throttled: {node.throttled} thermal events; {where}"
    clock = float(np.median(node.clock)) if node.clock else 0.0
    if clock and kind.clock and clock < (1 - LOWER) * kind.clock:
        return f"{where}: clock {clock / 1e9:.2f} GHz, typical {kind.clock / 1e9:.2f} GHz"
    known = f"at the usual clock rate, {clock / 1e9:.2f} GHz" if clock else "clock or quota"
    return f"{where} ({known})"


def _where(slow: Mapping[Quantity, NodeRatio]) -> str:
    if "all cores" not in slow:
        return "slow with one core busy"
    if "one core" not in slow:
        return "slow with all cores busy: power or cooling"
    return "all cores slow"


def _cause_of_cores(node: NodeSamples, cores: Mapping[int, NodeRatio]) -> str:
    """'core 5 slow', or what it is that takes the time of these cores."""
    names = few([node.core_name(core) for core in cores], MOST_CORES)
    held = [1 - one.busy for one in cores.values()]
    if all(h >= HALF * (1 - one.ratio) for h, one in zip(held, cores.values())):
        return f"another load on {names}: no processor for {100 * max(held):.0f} % of the time"
    return f"{names} slow"


def _load(one: NodeRatio, ranks: int, losses: NodeLosses) -> str:
    """What else used the processors, if that explains at least half of what the node lacks; else "".

    A quota for fewer CPUs than ranks explains the time without a processor: its counter also covers the parts
    of a round in which most ranks sleep.
    """
    lacking, held = 1 - one.ratio, 1 - one.busy
    who = max(losses.percent, key=lambda name: losses.percent[name], default="")
    percent = losses.percent.get(who, 0.0)
    explains = percent > 0 and percent / 100 >= HALF * lacking
    narrow = percent > 0 and losses.quota < ranks and held >= HALF * lacking
    if who == QUOTA and (explains or narrow):
        percent = 100 * held if held >= HALF * lacking else percent
        return f"all cores slow: a quota of {losses.quota:.3g} CPUs withheld {percent:.0f} % of the time"
    if explains:
        return f"another load: {who} {percent:.0f} % of the CPU time"
    return f"another load: no processor for {100 * held:.0f} % of the time" if held >= HALF * lacking else ""


def _costs(kinds: Sequence[NodeKind], nodes: Sequence[NodeVerdict]) -> KeepingCosts | None:
    """What the slow nodes cost. Work per rank is equal, or in proportion to its speed; where kinds differ,
    the slowest kind sets the pace of equal shares."""
    kept = np.array([node.verdict != "slow" for node in nodes])
    if kept.all():
        return None
    ranks = np.array([kinds[node.kind].key.ranks for node in nodes], dtype=float)
    typical = np.array([kinds[node.kind].typical["all cores"] for node in nodes]) / ranks
    pace, capacity = (np.array([getattr(node, name) for node in nodes]) for name in ("pace", "capacity"))
    slowest = float(typical.min())
    remaining = float((ranks * kept).sum()) * float(typical[kept].min()) if kept.any() else 0.0
    return KeepingCosts(
        equal=1 - float((typical * pace).min()) / slowest,
        weighted=1 - float((ranks * typical * capacity).sum() / (ranks * typical).sum()),
        left_out=max(0.0, 1 - remaining / (float(ranks.sum()) * slowest)),
    )
