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
    needs: list[list[int]] = []
    for k, node in enumerate(nodes):
        on = [int(before[k])]
        for number, _ in node.waits:
            if number < 0:
                on.append(NEVER)  # a message that is never sent
                continue
            message = messages[number]
            on.append(int(before[message.sent[0]]))
            if message.posted is not None:
                on.append(int(before[message.posted[0]]) if message.posted[0] >= 0 else NEVER)
        needs.append(on)
    left = [sum(1 for n in on if n >= 0) + (1 << 20) * any(n == NEVER for n in on) for on in needs]
    users: list[list[int]] = [[] for _ in nodes]
    for k, on in enumerate(needs):
        for n in on:
            if n >= 0:
                users[n].append(k)
    level = [k for k, count in enumerate(left) if not count]
    found, done = [], 0
    while level:
        found.append(np.array(level, np.int64))
        done += len(level)
        following = []
        for k in level:
            for user in users[k]:
                left[user] -= 1
                if not left[user]:
                    following.append(user)
        level = following
    if done < len(nodes):
        raise DeadlockError(_blocked(nodes, messages, left))
    return found


def _blocked(nodes: list[Node], messages: list[PlannedMessage], left: list[int]) -> str:
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
