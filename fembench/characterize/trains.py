"""Trains of messages: the gap g(m), and Kielmann's method, version I of Mendes (2004), 4.3.2.

A train consists of n messages of m bytes in a row and one empty reply; a train of one is a round trip with m
bytes there and none back. For empty messages, n = 10, 20, 40, … until the link is saturated: the time per
message changes by 1 % or less. For others, n = 3, 6, … 18, likewise. Trains that take too long do not grow
further.
"""

import time
from collections.abc import Iterator, Sequence

import numpy as np

from fembench.characterize.pingpong import CONTROL, EMPTY, MESSAGE, Side
from fembench.ranks.comm import Comm
from fembench.records.network import Trains

SATURATED = 0.01  # change of the time per message
SIZES = (0, 64, 1024, 8192, 65536, 524288, 4194304)  # bytes
MOST_EMPTY, MOST = 640, 18
WARM, SINGLES = 3, 3  # warm-up trains of one; timed trains of one per repetition of the others


def measure_trains(
    comm: Comm, measure: int, mirror: int, sizes: Sequence[int], repeats: int, longest: float
) -> list[Trains]:
    """Trains of messages of these sizes (as given on `measure`), up to `longest` seconds. Call on both ranks;
    the results are on `measure`, [] on the other."""
    if comm.rank == mirror:
        sizes = comm.recv(source=measure, tag=CONTROL)
        side = Side(comm, measure, max(sizes))
        for m in sizes:
            while count := comm.recv(source=measure, tag=CONTROL):
                _take(side, m, count)
        return []
    comm.send(sizes, mirror, CONTROL)
    side = Side(comm, mirror, max(sizes))
    return [_trains(side, measure, m, repeats, longest) for m in sizes]


def lengths(m: int) -> Iterator[int]:
    """The lengths of the trains of one size, in ascending order."""
    if m:
        yield from range(3, MOST + 1, 3)
    else:
        yield from (10 * 2**k for k in range(MOST_EMPTY.bit_length()) if 10 * 2**k <= MOST_EMPTY)


def saturated(a_message: Sequence[float]) -> bool:
    """Whether the time per message is the same for the last two lengths, within SATURATED."""
    return len(a_message) > 1 and abs(a_message[-1] - a_message[-2]) <= SATURATED * a_message[-2]


def _trains(side: Side, rank: int, m: int, repeats: int, longest: float) -> Trains:
    for _ in range(WARM):
        _send(side, m, 1)
    singles = SINGLES * repeats
    counts, seconds, each = [1] * singles, [_send(side, m, 1) for _ in range(singles)], []
    for n in lengths(m):
        took = [_send(side, m, n) for _ in range(repeats)]
        counts += [n] * repeats
        seconds += took
        each.append(float(np.median(took)) / n)
        if saturated(each) or n * each[-1] > longest:
            break
    side.comm.send(0, side.partner, CONTROL)
    return Trains(measure=rank, mirror=side.partner, m=m, counts=tuple(counts), seconds=tuple(seconds))


def _send(side: Side, m: int, count: int) -> float:
    """Seconds of one train."""
    comm, partner, out = side.comm, side.partner, side.out[:m]
    comm.send(count, partner, CONTROL)
    side.request()
    start = time.perf_counter()
    pending = [comm.Isend(out, partner, MESSAGE) for _ in range(count)]
    comm.Recv(EMPTY, partner, MESSAGE)
    took = time.perf_counter() - start
    for request in pending:
        request.Wait()
    return took


def _take(side: Side, m: int, count: int) -> None:
    into = side.into[:m]
    side.ready()
    for _ in range(count):
        side.comm.Recv(into, side.partner, MESSAGE)
    side.comm.Send(EMPTY, side.partner, MESSAGE)
