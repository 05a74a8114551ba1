"""What is found about nodes, and what follows: speeds, the cost of the slow ones.

Nodes of one kind should be equally fast; a node is compared with
the typical one of its kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.base.arrays import F64
from fembench.records.nodes import NodeSamples, NodesLaunch
from fembench.stats.outliers import FEWEST_ALIKE, RELEVANT
from fembench.stats.summary import Interval

Quantity = Literal["one core", "all cores", "memory"]
QUANTITIES: tuple[Quantity, ...] = ("one core", "all cores", "memory")


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
    typical = {q: typical_rate(np.array([rates_of(node, q) for node in chosen])) for q in QUANTITIES}
    clocks = [float(np.median(node.clock)) for node in chosen if node.clock]
    return NodeKind(key, tuple(members), typical, float(np.median(clocks)) if clocks else 0.0)


def typical_rate(rates: npt.ArrayLike) -> float:
    """The typical rate in (n, rounds) or (rounds,) samples."""
    return float(np.exp(np.median(np.median(np.log(rates), axis=-1))))


def rates_of(node: NodeSamples, quantity: Quantity) -> F64:
    """(rounds,) samples of a quantity."""
    if quantity == "one core":
        return np.asarray(np.median(node.cores, axis=0))
    return np.array(node.together if quantity == "all cores" else node.memory)


def busy_of(node: NodeSamples, quantity: Quantity) -> F64:
    """(rounds,) fractions of the time with a processor."""
    if quantity == "one core":
        return np.asarray(np.median(node.cores_busy, axis=0))
    return np.array(node.together_busy if quantity == "all cores" else node.memory_busy)


@dataclass(frozen=True)
class NodeRatio:
    """A quantity of a node over that of its kind's typical node, with joint interval."""

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


@dataclass(frozen=True, slots=True)
class HostSpeed:
    """The speed of one host, over the typical host of the fastest kind."""

    name: str
    speed: float
    low: float
    high: float
    slow: bool = False
    cause: str = ""
    faulty: bool = False  # slow within its kind, or for a reason of its own: to be left out


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
    speeds: tuple[HostSpeed, ...] = ()  # of each node
    foreign: float = 0.0  # fraction of the CPU time that foreign work took from the typical node
    disturbed: str = ""  # the same in words; "": none

    def named(self, verdict: str) -> list[NodeVerdict]:
        """The nodes with this verdict."""
        return [node for node in self.nodes if node.verdict == verdict]


def differing(found: NodesFindings) -> list[NodeVerdict]:
    """Normal nodes not at the typical speed of their kind: about half are slow."""
    nodes = [node for node in found.nodes if node.verdict == "normal"]
    return [node for node in nodes if any(map(_apart, node.ratios.values()))]


def _apart(one: NodeRatio) -> bool:
    return one.high < 1 - RELEVANT or one.low > 1 + RELEVANT


def beyond_doubt(high: float, foreign: float = 0.0) -> bool:
    """Whether a ratio whose interval ends at `high` is below that of the typical node in any case.

    Even if all that foreign work took from the typical node was taken from this one.
    """
    return high / max(1 - foreign, 1e-9) < 1 - RELEVANT


def with_ends(value: float, interval: Interval | None) -> tuple[float, float, float]:
    """Without an interval, its ends are nan; 1 is the reference itself."""
    if interval is None:
        return (1.0, 1.0, 1.0) if value == 1 else (value, np.nan, np.nan)
    return value, min(interval.low, value), max(interval.high, value)


def keeping_costs(
    n_ranks: Sequence[int], nodes: Sequence[NodeVerdict], speeds: Sequence[HostSpeed]
) -> KeepingCosts | None:
    """What the slow nodes cost.

    Work per rank is equal, or in proportion to its speed; where kinds differ, the
    slowest kind sets the pace of equal shares.
    """
    kept = np.array([node.verdict != "slow" for node in nodes])
    if kept.all():
        return None
    ranks = np.array(n_ranks, dtype=float)
    pace, capacity = (np.array([getattr(node, name) for node in nodes]) for name in ("pace", "capacity"))
    typical = np.array([one.speed if one.slow else 1.0 for one in speeds]) / pace  # if none were slow
    slowest = float(typical.min())
    remaining = float((ranks * kept).sum()) * float(typical[kept].min()) if kept.any() else 0.0
    return KeepingCosts(
        equal=1 - float((typical * pace).min()) / slowest,
        weighted=1 - float((ranks * typical * capacity).sum() / (ranks * typical).sum()),
        left_out=max(0.0, 1 - remaining / (float(ranks.sum()) * slowest)),
    )
