"""Where a graph is cut into parts that can be planned once and simulated many times."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from fembench.base.errors import InputError
from fembench.model.graph import Collective, Event, Loop, Program, Receive, Send, Wait, flat, length

LONGEST = 5_000_000  # events that a graph may have unrolled, where its loops do not fit together


def cut(programs: Sequence[Program]) -> Iterator[tuple[int, list[Program]]]:
    """(turns, body of each rank) for every segment; one segment where loops or messages do not fit."""
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
            f"{total} events, and loops of the ranks differ; expected at most {LONGEST} unless all ranks "
            "have the same loops with messages that stay inside them"
        )
    yield 1, [tuple(flat(program)) for program in programs]


def _parts(program: Program) -> Iterator[tuple[int, Program]]:
    """Straight parts (one turn) and loops in turn; a straight part may be empty."""
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
    """Whether all that is sent is received, and all waits are over, within one turn."""
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
