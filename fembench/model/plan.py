"""A graph prepared for simulation on a machine: nodes, messages, and their dependencies.

A node is the part of one rank's program up to and including the next wait. Its work is known beforehand; only
its waiting time has to be simulated:

    begin(node)   = end of the rank's node before it
    ready(msg)    = begin(source node) + offset; where it waits for its receiver, the later of both sides
    arrival(msg)  = ready + L
    end(node)     = begin + work, then for each message waited for, in order of arrival:
                    end = max(end, arrival) + Or

A graph is cut into segments where all ranks have loops with the same number of turns. No message leaves its
segment, so a loop is planned once.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.base.errors import FembenchError

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class DeadlockError(FembenchError):
    """Ranks wait for messages that never arrive."""


class Step(NamedTuple):
    """A part of a node: what its rank does, starting at `offset`."""

    offset: float
    seconds: float
    phase: int
    compute: bool  # else overhead of a message


@dataclass
class Node:
    rank: int
    phase: int = -1  # of the wait that ends it; -1: none does
    work: float = 0.0  # seconds until the wait
    steps: list[Step] = field(default_factory=list)
    waits: list[tuple[int, float]] = field(default_factory=list)  # (message, Or)

    def add(self, seconds: float, phase: int, compute: bool) -> None:
        self.steps.append(Step(self.work, seconds, phase, compute))
        self.work += seconds


@dataclass
class PlannedMessage:
    source: int  # rank
    target: int
    m: int
    latency: float
    gap: float
    sent: tuple[int, float]  # node, offset from which it may travel, for the sender's part
    posted: tuple[int, float] | None = None  # for the receiver's; None: it need not wait for that


@dataclass(frozen=True)
class Segment:
    """One turn of a part of the graph."""

    turns: int
    nodes: list[Node]
    messages: list[PlannedMessage]
    before: Ints  # (n_nodes,) node before it on its rank; rank - n_ranks (negative) for the first
    levels: list[Ints]  # nodes whose waits depend on earlier levels only
    last: Ints  # (n_ranks,) last node of each rank; rank - n_ranks where it has none
    busy: Array  # (n_ranks, n_phases) seconds of a turn
    overhead: Array
    sent: Ints  # (n_ranks,) messages of a turn
    n_bytes: Ints  # (n_ranks,) sent


@dataclass(frozen=True)
class SimulationPlan:
    segments: list[Segment]
    ranks: int
    phases: tuple[str, ...]
    host: tuple[int, ...]
