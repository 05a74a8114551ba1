"""The order in which nodes are simulated, independent ones together; detects deadlocks.

Cut a graph into segments that are planned once and simulated many times."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from fembench.base.errors import InputError
from fembench.base.units import few
from fembench.model.graph import Collective, Event, Loop, Program, Receive, Send, Wait, flat, length
from fembench.model.plan import DeadlockError, Ints, Node, PlannedMessage

NEVER = -(1 << 40)  # a dependency that is never met


def levels_of(nodes: list[Node], messages: list[PlannedMessage], before: Ints) -> list[Ints]:
    """Levels of nodes, each depending only on earlier levels. Raises DeadlockError."""
    users, on = _dependencies(nodes, messages, before)
    left = np.bincount(users[on >= 0], minlength=len(nodes))
    left[users[on == NEVER]] += 1 << 20
    users, on = users[on >= 0], on[on >= 0]
    users = users[np.argsort(on, kind="stable")]  # of the first node, of the second, …
    ends = np.append(0, np.cumsum(np.bincount(on, minlength=len(nodes))))
    level, found = np.flatnonzero(left == 0), []
    while len(level):
        found.append(level)
        n = ends[level + 1] - ends[level]
        freed = users[np.repeat(ends[level] - np.cumsum(n) + n, n) + np.arange(n.sum())]
        np.subtract.at(left, freed, 1)
        level = np.unique(freed[left[freed] == 0])
    if sum(map(len, found)) < len(nodes):
        raise DeadlockError(_blocked(nodes, messages, left))
    return found


def _dependencies(nodes: list[Node], messages: list[PlannedMessage], before: Ints) -> tuple[Ints, Ints]:
    """Pairs (node, earlier node that it depends on; negative: none, NEVER: one that does not exist)."""
    sent = np.array([*(message.sent[0] for message in messages), -1], np.int64)
    eager = NEVER - 1
    posted = np.array([*(m.posted[0] if m.posted else eager for m in messages), eager], np.int64)
    every = np.arange(len(nodes))
    waiting = np.repeat(every, [len(node.waits) for node in nodes])
    numbers = np.array([number for node in nodes for number, _ in node.waits], np.int64)
    numbers = np.where(numbers < 0, len(messages), numbers)  # a message that is never sent
    met = posted[numbers] != eager
    ends = np.concatenate((sent[numbers], posted[numbers][met]))
    on = np.where(ends < 0, NEVER, before[np.maximum(ends, 0)]) if len(ends) else ends
    return np.concatenate((every, waiting, waiting[met])), np.concatenate((before, on))


def _blocked(nodes: list[Node], messages: list[PlannedMessage], left: Ints) -> str:
    """The ranks that wait for ever, and their partners."""
    first: dict[int, Node] = {}
    for k, node in enumerate(nodes):
        if left[k] > 0:
            first.setdefault(node.rank, node)
    shown = []
    for rank, node in sorted(first.items()):
        partners = set()
        for number, _ in node.waits:
            if number >= 0:
                message = messages[number]
                partners.add(message.target if message.source == rank else message.source)
        shown.append(f"{rank} (for {', '.join(map(str, sorted(partners))) or 'a message never sent'})")
    return f"deadlock: blocked ranks {few(shown, 8)}"


LONGEST = 5_000_000  # most events of an unrolled graph, if the loops of its ranks differ


def cut(programs: Sequence[Program]) -> Iterator[tuple[int, list[Program]]]:
    """(turns, body of each rank) per segment; a single segment if loops differ or messages leave them."""
    parts = [list(_parts(program)) for program in programs]
    shapes = {tuple(turns for turns, _ in part) for part in parts}
    if len(shapes) == 1:
        found = [(turns, [part[k][1] for part in parts]) for k, turns in enumerate(shapes.pop())]
        if all(_closed(bodies) for _, bodies in found):
            yield from ((turns, bodies) for turns, bodies in found if any(bodies))
            return
    total = sum(map(length, programs))
    if total > LONGEST:
        raise InputError(
            f"{total} events with loops that differ between ranks; expected up to {LONGEST}, or the same "
            "loops on all ranks, with all messages inside them"
        )
    yield 1, [tuple(flat(program)) for program in programs]


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


def _closed(bodies: Sequence[Program]) -> bool:
    """Whether every message is sent, received and waited for within one turn."""
    balance: dict[tuple[int, int, int], int] = defaultdict(int)
    shared: list[tuple[object, ...]] = []
    for rank, body in enumerate(bodies):
        pending: Counter[int] = Counter()  # requests by tag
        for e in body:
            if isinstance(e, Send):
                balance[rank, e.to, e.tag] += 1
                pending[e.tag] += not e.blocking
            elif isinstance(e, Receive):
                balance[e.source, rank, e.tag] -= 1
                pending[e.tag] += not e.blocking
            elif isinstance(e, Wait):
                pending = Counter() if e.tag is None else Counter({**pending, e.tag: 0})
        if any(pending.values()):
            return False
        shared.append(tuple(e.kind for e in body if isinstance(e, Collective)))
    return not any(balance.values()) and len(set(shared)) == 1
