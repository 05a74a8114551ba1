"""Kinds of nodes: those that should be equally fast, and how fast a typical one is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.records.nodes import NodeSamples, NodesLaunch
from fembench.stats.outliers import FEWEST_ALIKE

Array = npt.NDArray[np.float64]
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


def typical_rate(rates: Array) -> float:
    """The typical rate in (n, rounds) samples."""
    return float(np.exp(np.median(np.median(np.log(rates), axis=1))))


def rates_of(node: NodeSamples, quantity: Quantity) -> Array:
    """(rounds,) samples of a quantity."""
    if quantity == "one core":
        return np.asarray(np.median(node.cores, axis=0))
    return np.array(node.together if quantity == "all cores" else node.memory)


def busy_of(node: NodeSamples, quantity: Quantity) -> Array:
    """(rounds,) fractions of the time with a processor."""
    if quantity == "one core":
        return np.asarray(np.median(node.cores_busy, axis=0))
    return np.array(node.together_busy if quantity == "all cores" else node.memory_busy)
