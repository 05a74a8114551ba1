"""Which nodes are slow, by the samples of `fembench nodes`.

Nodes are compared with those of their *kind*: the same processor, number of cores and
ranks. The test is that of `stats.outliers`, for three quantities per node and for each
core. A slow node is then measured alone. If it is as fast as its kind there, its
neighbours (or something in passing) disturbed it: it is no outlier. The speed of every
node is stated over the typical node of the fastest kind. A node that is not slow within
its kind, or has too few of its kind to be compared with, is slow nevertheless if it
lacks speed for a reason of its own: a quota, another load or heat. Of a kind that is
not compared, the fastest node is the typical one.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from fembench.base.arrays import F64
from fembench.records.nodes import NodeSamples, NodesLaunch, NodesRecord
from fembench.records.quiet import foreign, foreign_work
from fembench.stats.outliers import FEWEST_ALIKE, RELEVANT, Ratios, from_deviations, joint_level, ratios_alike
from fembench.stats.student import log_interval
from fembench.weights.node_causes import NodeLosses, by_quota, cause_of, losses_of, of_its_own
from fembench.weights.node_verdicts import (
    QUANTITIES,
    HostSpeed,
    NodeKind,
    NodeRatio,
    NodesFindings,
    NodeVerdict,
    Quantity,
    beyond_doubt,
    busy_of,
    keeping_costs,
    kinds_of,
    rates_of,
    typical_rate,
    with_ends,
)


class _Compared(NamedTuple):
    """One quantity of the nodes (or cores) of a kind."""

    all: Ratios
    running: F64
    busy: F64
    typical: float = 0.0  # rate of a node

    def of(self, k: int, alone: float | None) -> NodeRatio:
        ends = (float(x[k]) for x in (self.all.ratio, self.all.low, self.all.high))
        ratio, low, high = ends
        slow = bool(self.all.slow[k])
        return NodeRatio(ratio, low, high, slow, float(self.running[k]), float(self.busy[k]), alone)


def slow_nodes(record: NodesRecord) -> NodesFindings:
    """Verdict, cause and speed of every node of a record."""
    launch = record.first
    kinds = list(kinds_of(launch))
    tests = sum(_tests(launch, kind) for kind in kinds)
    alone = {node.name: node for node in record.second.nodes} if record.second else {}
    share = _foreign_share(launch)
    found: dict[int, NodeVerdict] = {}
    for number, kind in enumerate(kinds):
        nodes = [launch.nodes[k] for k in kind.nodes]
        compared = {q: _compare_nodes(nodes, q, tests) for q in QUANTITIES} if kind.compared else {}
        typical = kind.typical | {q: one.typical for q, one in compared.items()}
        kinds[number] = kind = dataclasses.replace(kind, typical=typical)
        judged = _verdicts(number, kind, nodes, launch, compared, tests, alone)
        for k, verdict in zip(kind.nodes, judged):
            found[k] = _despite(verdict, share)
    within = NodesFindings(
        kinds=tuple(kinds),
        nodes=tuple(found[k] for k in range(len(launch.nodes))),
        costs=None,
        rounds=launch.rounds,
        synthetic=launch.environment.synthetic,
        foreign=share,
        disturbed=foreign_work([launch.environment]) if share else "",
    )
    verdicts, speeds = zip(*across_kinds(record, within))
    costs = keeping_costs([node.ranks for node in launch.nodes], verdicts, speeds)
    return dataclasses.replace(within, nodes=verdicts, speeds=speeds, costs=costs)


def _foreign_share(launch: NodesLaunch) -> float:
    """The fraction of the CPU time that foreign work took from the typical node.

    Nodes that share a host are emulated: their time is that of their own processes.
    """
    hosts = [launch.environment.hosts[node.host] for node in launch.nodes]
    if len({node.host for node in launch.nodes}) < len(hosts):
        return 0.0
    return float(np.median([sum(foreign(host).values()) / 100 for host in hosts]))


def _despite(verdict: NodeVerdict, share: float) -> NodeVerdict:
    """The verdict beside foreign work on all nodes.

    A node is slow if that cannot be all that it lacks, or if its quota is the cause;
    nothing is said of others.
    """
    if not share or verdict.verdict == "not compared":
        return verdict
    slow = [one for one in (*verdict.ratios.values(), *verdict.cores.values()) if one.slow]
    certain = by_quota(verdict.cause) or any(beyond_doubt(one.high, share) for one in slow)
    if verdict.verdict == "slow" and certain:
        return verdict
    return dataclasses.replace(verdict, verdict="disturbed", pace=1.0, capacity=1.0)


def _tests(launch: NodesLaunch, kind: NodeKind) -> int:
    """Intervals that must hold together: of each quantity and core compared."""
    cores = kind.key.ranks * len(kind.nodes)
    if kind.compared:
        return len(QUANTITIES) * len(kind.nodes) + cores
    return cores if kind.key.ranks >= FEWEST_ALIKE else 0


def _verdicts(
    number: int,
    kind: NodeKind,
    nodes: Sequence[NodeSamples],
    launch: NodesLaunch,
    compared: Mapping[Quantity, _Compared],
    tests: int,
    alone: Mapping[str, NodeSamples],
) -> Iterator[NodeVerdict]:
    """The verdicts on the nodes of one kind."""
    cores = _compare_cores(nodes, tests)
    losses = losses_of(nodes, launch, nodes)
    for k, node in enumerate(nodes):
        again = alone.get(node.name)
        ratios = {q: one.of(k, _alone(again, q, kind)) for q, one in compared.items()}
        slow_cores = _slow_cores(k, node, nodes, cores, again)
        yield _verdict(number, kind, node, ratios, slow_cores, losses[k])


def _compare_nodes(nodes: Sequence[NodeSamples], quantity: Quantity, tests: int) -> _Compared:
    rates = np.array([rates_of(node, quantity) for node in nodes])
    busy = np.array([busy_of(node, quantity) for node in nodes])
    share = np.median(busy, axis=1)
    found = ratios_alike(rates, tests)
    return _Compared(
        found,
        ratios_alike(rates / busy, tests).ratio,
        share / np.median(share[~found.slow]),
        typical_rate(rates / found.ratio[:, None]),
    )


def _compare_cores(nodes: Sequence[NodeSamples], tests: int) -> _Compared | None:
    """Every core against the same one of other nodes or, with too few, its node's.

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
            ratio = typical_rate(again.cores[core]) / typical_rate(np.array(others))
        found[core] = cores.of(first + core, ratio)
    return found


def _alone(again: NodeSamples | None, quantity: Quantity, kind: NodeKind) -> float | None:
    """The ratio of a node measured alone to the typical node of the first launch."""
    return typical_rate(rates_of(again, quantity)) / kind.typical[quantity] if again else None


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
        cause = cause_of(kind, node, ratios, cores, losses)
    if verdict == "slow":
        pace = min(one.ratio for one in slow)
        of_node = [one.ratio for one in ratios.values() if one.slow]
        capacity = min([*of_node, 1 - sum(1 - one.ratio for one in cores.values()) / node.ranks])
    return NodeVerdict(node.name, number, verdict, cause, ratios, cores, pace, capacity)


PACE: tuple[Quantity, ...] = ("all cores", "memory")
Judged = tuple[NodeVerdict, HostSpeed]


def across_kinds(record: NodesRecord, found: NodesFindings) -> Iterator[Judged]:
    """The final verdict on each node, from that within its kind, and its speed."""
    nodes = record.first.nodes
    again = (
        {node.name: np.median(_rates([node])[0], axis=1) for node in record.second.nodes}
        if record.second
        else {}
    )
    rates = _rates(nodes)
    busy = np.array([[np.median(busy_of(node, q)) for q in QUANTITIES] for node in nodes])
    pace = np.median(rates[:, QUANTITIES.index("all cores")], axis=1)
    compared = [_typical_of(kind, found.nodes) for kind in found.kinds]
    groups = [
        group or [max(kind.nodes, key=lambda k: float(pace[k]))] for group, kind in zip(compared, found.kinds)
    ]
    reference = max(groups, key=lambda members: float(np.median(pace[members])))
    typical = np.median(rates[reference], axis=0)
    usual = np.median(busy[reference], axis=0)
    for k, verdict in enumerate(found.nodes):
        ratios = np.median(rates[compared[verdict.kind] or [k]], axis=0) / typical
        alone = again[verdict.name] / np.median(typical, axis=1) if verdict.name in again else None
        yield _judged(record, found, k, _ratios(ratios, busy[k] / usual, alone, len(nodes)), reference)


def _typical_of(kind: NodeKind, nodes: Sequence[NodeVerdict]) -> list[int]:
    """Its nodes that are not slow, or all if each is; [] for a kind that is not compared."""
    normal = [k for k in kind.nodes if nodes[k].verdict != "slow"]
    return (normal or list(kind.nodes)) if kind.compared else []


def _rates(nodes: Sequence[NodeSamples]) -> F64:
    """(n, quantities, rounds) per rank."""
    return np.array(
        [[rates_of(n, q) / (1 if q == "one core" else n.ranks) for q in QUANTITIES] for n in nodes]
    )


def _ratios(ratios: F64, busy: F64, alone: F64 | None, n_nodes: int) -> dict[Quantity, NodeRatio]:
    """From (quantities, rounds) ratios; the others are (quantities,)."""
    found, level = {}, joint_level(len(PACE) * n_nodes)
    for k, (q, samples) in enumerate(zip(QUANTITIES, ratios)):
        value, low, high = with_ends(float(np.median(samples)), log_interval(samples, level))
        again = None if alone is None else float(alone[k])
        held = float(busy[k])
        found[q] = NodeRatio(value, low, high, beyond_doubt(high), value / held, held, again)
    return found


def _judged(
    record: NodesRecord,
    found: NodesFindings,
    k: int,
    ratios: dict[Quantity, NodeRatio],
    reference: Sequence[int],
) -> Judged:
    """`ratios`: of its kind, or its own, over `reference`, the nodes that are typical."""
    verdict = found.nodes[k]
    nodes = record.first.nodes
    fastest = found.nodes[reference[0]].kind
    kind = found.kinds[verdict.kind]
    typical = found.kinds[fastest]
    worst = min((ratios[q] for q in PACE), key=lambda one: one.ratio)
    if verdict.verdict == "slow":
        found_slow = (one for one in (*verdict.ratios.values(), *verdict.cores.values()) if one.slow)
        own = min(found_slow, key=lambda one: one.ratio)
        ends = own.ratio * worst.ratio, own.low * worst.low, own.high * worst.high
        return verdict, HostSpeed(verdict.name, *ends, slow=True, cause=verdict.cause, faulty=True)
    if kind is typical and kind.compared:
        one = verdict.ratios["all cores"]
        return verdict, HostSpeed(verdict.name, one.ratio, one.low, one.high)
    losses = losses_of([nodes[k]], record.first, [nodes[other] for other in reference])[0]
    cause = cause_of(typical, nodes[k], ratios, {}, losses) if worst.slow else ""
    lasting = worst.alone is None or worst.alone < 1 - RELEVANT
    slow = lasting and beyond_doubt(worst.high, 0.0 if by_quota(cause) else found.foreign)
    faulty = slow and of_its_own(cause)
    other = kind.key.cpu_model != typical.key.cpu_model
    if other and not faulty:
        cause = f"another processor: {kind.key.cpu_model}"
    speed = HostSpeed(verdict.name, worst.ratio, worst.low, worst.high, slow, cause if slow else "", faulty)
    if faulty:
        pace = worst.busy if other else worst.ratio
        verdict = dataclasses.replace(verdict, verdict="slow", cause=cause, pace=pace, capacity=pace)
    return verdict, speed
