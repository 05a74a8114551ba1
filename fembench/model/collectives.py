"""Collectives as sequences of messages, as MPI libraries implement them.

    allreduce, up to RING bytes      recursive doubling: log2 P exchanges; if P is not a power of two, the
                                     first 2 (P - 2^k) ranks pair up before and after
    allreduce, above                 ring: 2 (P - 1) messages of m / P
    bcast, reduce                    binomial tree
    allgather                        Bruck: ceil(log2 P) messages to rank - 2^k, with all data received so far
    barrier                          dissemination: ceil(log2 P) empty messages to rank + 2^k

Open MPI and MPICH do so for small messages; both cut large ones into segments.
"""

import math
from collections.abc import Callable, Iterator

from msgspec import structs

from fembench.model.graph import Collective, Event, Program, Receive, Send, Wait

TAG, BEGUN = -1, -2  # tags of blocking and non-blocking collectives
RING = 1 << 16  # bytes


def expand(event: Collective, rank: int, ranks: int) -> Iterator[Event]:
    """The events of one rank in a collective over all ranks."""
    if ranks == 1:
        return
    if event.kind == "allreduce":
        ring = event.m > RING
        yield from _ring(event, rank, ranks) if ring else _doubling(event, rank, ranks)
    elif event.kind == "allgather":
        yield from _gathering(event, rank, ranks)
    elif event.kind == "barrier":
        yield from _dissemination(event, rank, ranks)
    elif event.kind == "bcast":
        yield from _bcast(event, rank, ranks)
    else:
        yield from _reduce(event, rank, ranks)


def stages(ranks: int) -> int:
    """The number of consecutive exchanges of an all-reduce by recursive doubling."""
    return math.ceil(math.log2(ranks)) if ranks > 1 else 0


def doubling_seconds(ranks: int, seconds: Callable[[int, int], float]) -> float:
    """Seconds of recursive doubling, a stage as long as its slowest pair's seconds(p, q)."""
    return sum(
        max((seconds(r, r ^ (1 << k)) for r in range(ranks) if r ^ (1 << k) < ranks), default=0.0)
        for k in range(stages(ranks))
    )


def halves(event: Collective, rank: int, ranks: int) -> tuple[Program, Program]:
    """The events of a non-blocking collective: (when it starts,
    when a rank waits for it).

    In between, only its first messages travel, because MPI makes
    no progress between calls.
    """
    events = tuple(structs.replace(e, tag=BEGUN) for e in expand(event, rank, ranks))
    first = next((k for k, e in enumerate(events) if isinstance(e, Wait) or _waits(e)), len(events))
    return events[:first], events[first:]


def _waits(event: Event) -> bool:
    return isinstance(event, Receive) and event.blocking


def _exchange(event: Collective, to: int, source: int, m: int) -> Iterator[Event]:
    yield Receive(source, m, event.phase, TAG)
    yield Send(to, m, event.phase, TAG)
    yield Wait(event.phase, TAG)


def _doubling(event: Collective, rank: int, ranks: int) -> Iterator[Event]:
    core = 1 << (ranks.bit_length() - 1)
    extra = ranks - core
    paired = rank < 2 * extra
    if paired and rank % 2 == 0:  # sends its values to the neighbour and waits for the sum
        yield Send(rank + 1, event.m, event.phase, TAG, blocking=True)
        yield Receive(rank + 1, event.m, event.phase, TAG, blocking=True)
        return
    if paired:
        yield Receive(rank - 1, event.m, event.phase, TAG, blocking=True)
    mine = rank // 2 if paired else rank - extra
    for k in range(core.bit_length() - 1):
        other = mine ^ (1 << k)
        partner = 2 * other + 1 if other < extra else other + extra
        yield from _exchange(event, partner, partner, event.m)
    if paired:
        yield Send(rank - 1, event.m, event.phase, TAG, blocking=True)


def _ring(event: Collective, rank: int, ranks: int) -> Iterator[Event]:
    for _ in range(2 * (ranks - 1)):
        yield from _exchange(event, (rank + 1) % ranks, (rank - 1) % ranks, -(-event.m // ranks))


def _gathering(event: Collective, rank: int, ranks: int) -> Iterator[Event]:
    held = 1
    while held < ranks:
        m = event.m * min(held, ranks - held)
        yield from _exchange(event, (rank - held) % ranks, (rank + held) % ranks, m)
        held *= 2


def _dissemination(event: Collective, rank: int, ranks: int) -> Iterator[Event]:
    step = 1
    while step < ranks:
        yield from _exchange(event, (rank + step) % ranks, (rank - step) % ranks, 0)
        step *= 2


def _bcast(event: Collective, rank: int, ranks: int) -> Iterator[Event]:
    me = (rank - event.root) % ranks
    mask = 1
    while mask < ranks and not me & mask:
        mask *= 2
    if me:
        yield Receive((me - mask + event.root) % ranks, event.m, event.phase, TAG, blocking=True)
    while mask > 1:
        mask //= 2
        if me + mask < ranks:
            yield Send((me + mask + event.root) % ranks, event.m, event.phase, TAG, blocking=True)


def _reduce(event: Collective, rank: int, ranks: int) -> Iterator[Event]:
    me = (rank - event.root) % ranks
    mask = 1
    while mask < ranks:
        if me & mask:
            yield Send((me - mask + event.root) % ranks, event.m, event.phase, TAG, blocking=True)
            return
        if me + mask < ranks:
            yield Receive((me + mask + event.root) % ranks, event.m, event.phase, TAG, blocking=True)
        mask *= 2
