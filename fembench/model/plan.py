"""A graph prepared for simulation on a machine: nodes, messages, and their dependencies.

A node is the part of one rank's program up to and including the next wait. Its work is
known in advance; only its waiting time has to be simulated:

    begin(node)   = end of the rank's previous node
    ready(msg)    = begin(source node) + offset; if it waits for its receiver, the later of both sides
    arrival(msg)  = ready + L
    end(node)     = begin + work, then for each message waited for, in order of arrival:
                    end = max(end, arrival) + Or

A graph is cut into segments, one per loop, if all ranks have loops with the same
numbers of turns. No message leaves its segment, so a loop is planned only once.
"""

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fembench.base.arrays import F64, I64, Mask
from fembench.base.errors import FembenchError

NEVER_POSTED, EAGER = -1, -2  # in place of a receiver's node


class DeadlockError(FembenchError):
    """Ranks wait for messages that never arrive."""


class Step(NamedTuple):
    """A part of a node: an activity of its rank, from `offset` on."""

    offset: float
    seconds: float
    phase: int
    compute: bool  # False: overhead of a message


class Node(NamedTuple):
    rank: int
    phase: int  # of the wait that ends it; -1: no wait
    work: float  # seconds until the wait
    steps: list[Step]
    waits: list[tuple[int, float]]  # (message, Or)


class PlannedMessage(NamedTuple):
    source: int  # rank
    target: int
    m: int
    latency: float
    gap: float
    sent: tuple[int, float]  # (node, offset) of the sender from which it may travel
    posted: tuple[int, float] | None  # the same of the receiver; None: eager


@dataclass(frozen=True)
class NodeTable:
    """All nodes, rank after rank."""

    rank: I64  # (n_nodes,)
    phase: I64
    work: F64
    first_step: I64  # (n_nodes + 1,)
    first_wait: I64  # (n_nodes + 1,)
    offset: F64  # (n_steps,) of the steps, node after node
    seconds: F64
    step_phase: I64
    compute: Mask
    message: I64  # (n_waits,) waited for, node after node; -1: one that is never sent
    overhead: F64  # (n_waits,) Or

    def __len__(self) -> int:
        return len(self.rank)

    def waiting(self) -> I64:
        """(n_waits,) the node of each wait."""
        return np.repeat(np.arange(len(self)), np.diff(self.first_wait))


@dataclass(frozen=True)
class MessageTable:
    """All messages, in the order of their senders' nodes."""

    source: I64  # (n_messages,)
    target: I64
    m: I64
    latency: F64
    gap: F64
    sent: I64  # node of the sender
    sent_offset: F64  # seconds after its begin from which the message may travel
    posted: I64  # node of the receiver; NEVER_POSTED; EAGER: it does not wait
    posted_offset: F64

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True)
class Segment:
    """One turn of a part of the graph."""

    turns: int
    node_table: NodeTable
    message_table: MessageTable
    before: I64  # (n_nodes,) previous node of the same rank; rank - n_ranks (negative) for the first
    levels: list[I64]  # nodes whose waits depend on earlier levels only
    last: I64  # (n_ranks,) last node of each rank; rank - n_ranks if it has none
    busy: F64  # (n_ranks, n_phases) seconds per turn
    overhead: F64
    sent: I64  # (n_ranks,) messages sent per turn
    n_bytes: I64  # (n_ranks,) bytes sent per turn

    @functools.cached_property
    def nodes(self) -> list[Node]:
        """The nodes as objects."""
        t = self.node_table
        steps = list(map(Step, *(c.tolist() for c in (t.offset, t.seconds, t.step_phase, t.compute))))
        waits = list(zip(t.message.tolist(), t.overhead.tolist()))
        first_step, first_wait = t.first_step.tolist(), t.first_wait.tolist()
        return [
            Node(*one, steps[first_step[k] : first_step[k + 1]], waits[first_wait[k] : first_wait[k + 1]])
            for k, one in enumerate(zip(t.rank.tolist(), t.phase.tolist(), t.work.tolist()))
        ]

    @functools.cached_property
    def messages(self) -> list[PlannedMessage]:
        """The messages as objects."""
        t = self.message_table
        plain = (c.tolist() for c in (t.source, t.target, t.m, t.latency, t.gap))
        sent = zip(t.sent.tolist(), t.sent_offset.tolist())
        posted = (
            None if node == EAGER else (node, offset)
            for node, offset in zip(t.posted.tolist(), t.posted_offset.tolist())
        )
        return list(map(PlannedMessage, *plain, sent, posted))


@dataclass(frozen=True)
class SimulationPlan:
    segments: list[Segment]
    ranks: int
    phases: tuple[str, ...]
    host: tuple[int, ...]
