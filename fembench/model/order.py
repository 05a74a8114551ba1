"""The order in which nodes are simulated, independent ones together; detects deadlocks.

Cut a graph into segments that are planned once and simulated many times."""

from collections.abc import Iterator, Sequence

import numpy as np

from fembench.base.arrays import I64
from fembench.base.errors import InputError
from fembench.base.units import few
from fembench.model.event_table import COLLECTIVE, RECEIVE, SEND, EventTable, partners, table_of, within
from fembench.model.graph import Event, Loop, Program, flat, length
from fembench.model.plan import EAGER, DeadlockError, MessageTable, NodeTable

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
    every, waiting, number = np.arange(len(nodes)), nodes.waiting(), nodes.message
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
        source, target = messages.source[number], messages.target[number]
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
    kind, rank, peer, tag = events.kind, events.rank(), events.peer, events.tag
    requests = np.flatnonzero(((kind == SEND) | (kind == RECEIVE)) & ~events.blocking)
    if np.any(events.waits_for(requests) < 0):
        return False
    there, back = kind == SEND, kind == RECEIVE
    sent, received = (rank[there], peer[there], tag[there]), (peer[back], rank[back], tag[back])
    if there.sum() != back.sum() or np.any(partners(sent, received) < 0):
        return False
    collective = kind == COLLECTIVE
    kinds = np.array([one.kind for one in events.collectives])
    ends = np.cumsum(np.bincount(rank[collective], minlength=events.ranks))
    return len({tuple(kinds[one]) for one in np.split(peer[collective], ends[:-1])}) == 1
