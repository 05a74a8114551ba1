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

Nodes are simulated in an order, independent ones together; it detects deadlocks.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fembench.base.arrays import F64, I64, Mask
from fembench.base.errors import FembenchError, InputError
from fembench.base.units import few
from fembench.model.event_table import COLLECTIVE, RECEIVE, SEND, EventTable, partners, table_of, within
from fembench.model.graph import Event, Loop, Program, flat, length

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
    before: I64  # (n_nodes,) previous node of the rank; of its first, rank - n_ranks (negative)
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
        first_step = t.first_step.tolist()
        first_wait = t.first_wait.tolist()
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


NEVER = -(1 << 40)  # a dependency that is never met


def levels_of(nodes: NodeTable, messages: MessageTable, before: I64) -> list[I64]:
    """Levels of nodes, each depending only on earlier levels. Raises DeadlockError."""
    users, on = _dependencies(nodes, messages, before)
    left = np.bincount(users[(on >= 0) | (on == NEVER)], minlength=len(nodes))
    users, on = users[on >= 0], on[on >= 0]
    users = users[np.argsort(on, kind="stable")]  # of the first node, of the second, …
    ends = np.append(0, np.cumsum(np.bincount(on, minlength=len(nodes))))
    level, found = np.flatnonzero(left == 0), []
    while len(level):
        found.append(level)
        freed = users[within(ends[level], ends[level + 1] - ends[level])]
        np.subtract.at(left, freed, 1)
        level = np.unique(freed[left[freed] == 0])
    if sum(map(len, found)) < len(nodes):
        raise DeadlockError(_blocked(nodes, messages, left))
    return found


def _dependencies(nodes: NodeTable, messages: MessageTable, before: I64) -> tuple[I64, I64]:
    """Pairs (node, earlier node that it depends on; negative: none; NEVER: no such node)."""
    every = np.arange(len(nodes))
    waiting = nodes.waiting()
    number = nodes.message
    posted = np.append(messages.posted, EAGER)[number]
    met = posted != EAGER
    ends = np.concatenate((np.append(messages.sent, -1)[number], posted[met]))
    on = np.where(ends < 0, NEVER, np.append(before, NEVER)[ends])
    return np.concatenate((every, waiting, waiting[met])), np.concatenate((before, on))


def _blocked(nodes: NodeTable, messages: MessageTable, left: I64) -> str:
    """The ranks that wait for ever, and their partners."""
    blocked = np.flatnonzero(left > 0)
    ranks, first = np.unique(nodes.rank[blocked], return_index=True)
    shown = []
    for rank, k in zip(ranks.tolist(), blocked[first].tolist()):
        number = nodes.message[nodes.first_wait[k] : nodes.first_wait[k + 1]]
        number = number[number >= 0]
        source = messages.source[number]
        target = messages.target[number]
        partners = np.unique(np.where(source == rank, target, source)).tolist()
        shown.append(f"{rank} (for {', '.join(map(str, partners)) or 'a message never sent'})")
    return f"deadlock: blocked ranks {few(shown, 8)}"


LONGEST = 5_000_000  # most events of an unrolled graph, if the loops of its ranks differ


def cut(programs: Sequence[Program]) -> Iterator[tuple[int, EventTable]]:
    """(turns, events of a turn) per segment; one if loops differ or messages leave them."""
    parts = [list(_parts(program)) for program in programs]
    shapes = {tuple(turns for turns, _ in part) for part in parts}
    if len(shapes) == 1:
        bodies = [[part[k][1] for part in parts] for k in range(len(parts[0]))]
        found = [(turns, table_of(body)) for turns, body in zip(shapes.pop(), bodies)]
        if all(_closed(events) for _, events in found):
            yield from ((turns, events) for turns, events in found if len(events.kind))
            return
    total = sum(map(length, programs))
    if total > LONGEST:
        raise InputError(
            f"{total} events with loops that differ between ranks; expected up to {LONGEST}, or the same "
            "loops on all ranks, with all messages inside them"
        )
    yield 1, table_of([tuple(flat(program)) for program in programs])


def _parts(program: Program) -> Iterator[tuple[int, Program]]:
    """Straight parts (one turn, possibly empty) and loops, alternating."""
    straight: list[Event] = []
    for event in program:
        if isinstance(event, Loop):
            yield 1, tuple(straight)
            yield event.turns, tuple(flat(event.body))
            straight = []
        else:
            straight.append(event)
    yield 1, tuple(straight)


def _closed(events: EventTable) -> bool:
    """Whether every message is sent, received and waited for within one turn."""
    kind = events.kind
    rank = events.rank()
    peer = events.peer
    tag = events.tag
    requests = np.flatnonzero(((kind == SEND) | (kind == RECEIVE)) & ~events.blocking)
    if np.any(events.waits_for(requests) < 0):
        return False
    there, back = kind == SEND, kind == RECEIVE
    sent = (rank[there], peer[there], tag[there])
    received = (peer[back], rank[back], tag[back])
    if there.sum() != back.sum() or np.any(partners(sent, received) < 0):
        return False
    collective = kind == COLLECTIVE
    kinds = np.array([one.kind for one in events.collectives])
    ends = np.cumsum(np.bincount(rank[collective], minlength=events.ranks))
    return len({tuple(kinds[one]) for one in np.split(peer[collective], ends[:-1])}) == 1
