"""A graph prepared for simulation on a machine: nodes, messages, and their dependencies.

A node is the part of one rank's program up to and including the next wait. Its work is known in advance; only
its waiting time has to be simulated:

    begin(node)   = end of the rank's previous node
    ready(msg)    = begin(source node) + offset; if it waits for its receiver, the later of both sides
    arrival(msg)  = ready + L
    end(node)     = begin + work, then for each message waited for, in order of arrival:
                    end = max(end, arrival) + Or

A graph is cut into segments, one per loop, if all ranks have loops with the same numbers of turns. No message
leaves its segment, so a loop is planned only once.
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
    """A part of a node: an activity of its rank, from `offset` on."""

    offset: float
    seconds: float
    phase: int
    compute: bool  # False: overhead of a message


@dataclass(slots=True)
class Node:
    rank: int
    phase: int = -1  # of the wait that ends it; -1: no wait
    work: float = 0.0  # seconds until the wait
    steps: list[Step] = field(default_factory=list)
    waits: list[tuple[int, float]] = field(default_factory=list)  # (message, Or)

    def add(self, seconds: float, phase: int, compute: bool) -> None:
        self.steps.append(Step(self.work, seconds, phase, compute))
        self.work += seconds


@dataclass(slots=True)
class PlannedMessage:
    source: int  # rank
    target: int
    m: int
    latency: float
    gap: float
    sent: tuple[int, float]  # (node, offset) of the sender from which it may travel
    posted: tuple[int, float] | None = None  # the same of the receiver; None: eager


@dataclass(frozen=True)
class Segment:
    """One turn of a part of the graph."""

    turns: int
    nodes: list[Node]
    messages: list[PlannedMessage]
    before: Ints  # (n_nodes,) previous node of the same rank; rank - n_ranks (negative) for the first
    levels: list[Ints]  # nodes whose waits depend on earlier levels only
    last: Ints  # (n_ranks,) last node of each rank; rank - n_ranks if it has none
    busy: Array  # (n_ranks, n_phases) seconds per turn
    overhead: Array
    sent: Ints  # (n_ranks,) messages sent per turn
    n_bytes: Ints  # (n_ranks,) bytes sent per turn


@dataclass(frozen=True)
class SimulationPlan:
    segments: list[Segment]
    ranks: int
    phases: tuple[str, ...]
    host: tuple[int, ...]
