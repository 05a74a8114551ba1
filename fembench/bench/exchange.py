"""Messages both ways at once, as neighbours exchange theirs, against the same ones after each other.

The way back of a network is not always a way of its own: acknowledgements travel on it, and one processor and
one card may serve both. Before each message and each exchange the sides make sure that nothing is under way:
what was sent before may still be in a queue, and the request of a large message waits there. The mirror is
ready a little earlier; the mean of both sides' times does not know of that. Turns of both kinds alternate, so
that a disturbance falls on both.
"""

import math
import time
from collections.abc import Callable
from typing import TypeVar

from fembench.bench.pingpong import CONTROL, MESSAGE, Side
from fembench.dist.comm import Comm
from fembench.records.network import Exchange

SIZES = (1024, 8192, 65536, 1 << 20)  # bytes
TURN = 5e-3  # seconds of messages in a turn
ROOM = 1.0  # seconds of turns of one kind and size
LEAST = 4  # turns of each kind
T = TypeVar("T")


def measure_exchange(comm: Comm, measure: int, mirror: int, largest: int, most: int) -> list[Exchange]:
    """Up to `most` turns of messages of each size up to `largest` bytes (of `measure`), called on two ranks;
    found on `measure`, [] on the other. The others must leave the processors alone meanwhile."""
    first = comm.rank == measure
    side = Side(comm, mirror if first else measure, SIZES[-1])
    found = []
    for m in _told(side, first, [m for m in SIZES if m <= largest]):
        for _ in range(2):  # connects, and warms buffers
            each = max(_in_turn(side, first, m, 1), _at_once(side, first, m, 1))
        trips = _told(side, first, math.ceil(TURN / each))
        turns = _told(side, first, round(min(max(ROOM / (trips * each), LEAST), most)))
        pairs = [(_in_turn(side, first, m, trips), _at_once(side, first, m, trips)) for _ in range(turns)]
        in_turn, at_once = zip(*pairs)
        found.append(Exchange(measure=measure, mirror=mirror, m=m, in_turn=in_turn, at_once=at_once))
    return found if first else []


def _told(side: Side, first: bool, value: T) -> T:
    """The measuring side's value, on both."""
    if first:
        side.comm.send(value, side.partner, CONTROL)
        return value
    return side.comm.recv(source=side.partner, tag=CONTROL)


def _in_turn(side: Side, first: bool, m: int, trips: int) -> float:
    """Seconds of a message: half of a round trip, on the side that begins."""

    def trip() -> None:
        if first:
            side.comm.Send(side.out[:m], side.partner, MESSAGE)
        side.comm.Recv(side.into[:m], side.partner, MESSAGE)
        if not first:
            side.comm.Send(side.out[:m], side.partner, MESSAGE)

    return _timed(side, first, trip, trips) / 2


def _at_once(side: Side, first: bool, m: int, trips: int) -> float:
    """Seconds of a message while another comes, as in a run's exchange: the mean of both sides."""

    def trip() -> None:
        coming = side.comm.Irecv(side.into[:m], side.partner, MESSAGE)
        going = side.comm.Isend(side.out[:m], side.partner, MESSAGE)
        coming.Wait()
        going.Wait()

    took = _timed(side, first, trip, trips)
    return (took + side.comm.sendrecv(took, side.partner, CONTROL, None, side.partner, CONTROL)) / 2


def _timed(side: Side, first: bool, trip: Callable[[], None], trips: int) -> float:
    """Mean seconds of trips before which nothing was under way."""
    took = 0.0
    for _ in range(trips):
        if first:
            side.request()
        else:
            side.ready()
        start = time.perf_counter()
        trip()
        took += time.perf_counter() - start
    return max(took / trips, 1e-9)
