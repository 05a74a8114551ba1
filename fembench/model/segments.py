"""Cut a graph into segments that are planned once and simulated many times."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from fembench.base.errors import InputError
from fembench.model.graph import Collective, Event, Loop, Program, Receive, Send, Wait, flat, length

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
