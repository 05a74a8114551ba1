"""What is found about nodes, and what follows for a run on them: speeds, and the cost of the slow ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fembench.stats.outliers import RELEVANT
from fembench.stats.summary import Interval
from fembench.weights.node_kinds import NodeKind, Quantity


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


@dataclass(frozen=True, slots=True)
class HostSpeed:
    """The speed of one host, over the typical host of the fastest kind."""

    name: str
    speed: float
    low: float
    high: float
    slow: bool = False
    cause: str = ""
    faulty: bool = (
        False  # slow within its kind, or for a reason of its own: to be left out, not of another kind
    )


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
    """Normal nodes that are not at the typical speed of their kind: about half of them are slow."""
    nodes = [node for node in found.nodes if node.verdict == "normal"]
    return [node for node in nodes if any(map(_apart, node.ratios.values()))]


def _apart(one: NodeRatio) -> bool:
    return one.high < 1 - RELEVANT or one.low > 1 + RELEVANT


def beyond_doubt(high: float, foreign: float = 0.0) -> bool:
    """Whether a ratio whose interval ends at `high` is below that of the typical node, even if all that
    foreign work took from the typical node was taken from this one."""
    return high / max(1 - foreign, 1e-9) < 1 - RELEVANT


def with_ends(value: float, interval: Interval | None) -> tuple[float, float, float]:
    """Without an interval, its ends are nan; 1 is the reference itself."""
    if interval is None:
        return (1.0, 1.0, 1.0) if value == 1 else (value, np.nan, np.nan)
    return value, min(interval.low, value), max(interval.high, value)


def keeping_costs(
    n_ranks: Sequence[int], nodes: Sequence[NodeVerdict], speeds: Sequence[HostSpeed]
) -> KeepingCosts | None:
    """What the slow nodes cost. Work per rank is equal, or in proportion to its speed; where kinds differ,
    the slowest kind sets the pace of equal shares."""
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
