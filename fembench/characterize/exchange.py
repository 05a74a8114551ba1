"""Messages in both directions at once, as between neighbours: while both wait, and while both compute.

The two directions of a network are not always independent: acknowledgements travel on both, and one processor
and one card may serve both. Before each message and each exchange, both sides make sure that nothing is in
flight: earlier data may still be queued, and the request of a large message would wait behind it. The mirror
is ready slightly earlier; the mean of both sides' times cancels this.

While a rank computes, the system handles its messages on the same processor: a loop takes longer than alone
(availability: Lawry et al., COMB, 2002), and the rank still has to receive the messages afterwards. Turns of
all kinds alternate, so that a disturbance affects all of them.
"""

import math
import time
from collections.abc import Callable
from typing import TypeVar

from fembench.characterize.pingpong import CONTROL, MESSAGE, Side
from fembench.characterize.progress import LONGER, counted, turns_of
from fembench.ranks.comm import Comm
from fembench.records.network import Exchange

SIZES = (1024, 8192, 32768, 131072, 1 << 20)  # bytes
SMALL = 65536  # bytes: messages of this size or more wait for their receivers, and do not travel meanwhile
TURN = 5e-3  # seconds of messages per turn
ROOM = 1.0  # seconds of turns per kind and size
LEAST = 4  # turns
T = TypeVar("T")


def measure_exchange(comm: Comm, measure: int, mirror: int, largest: int, most: int) -> list[Exchange]:
    """Up to `most` turns of messages for each size up to `largest` bytes (as given on `measure`). Call on
    both ranks; the result is on `measure`, [] on the other. Other ranks must be idle meanwhile."""
    first = comm.rank == measure
    pair = _ExchangeRank(Side(comm, mirror if first else measure, SIZES[-1]), first)
    found = [pair.exchange(m, most) for m in pair.agreed([m for m in SIZES if m <= largest])]
    return found if first else []


class _ExchangeRank:
    """One of the two ranks; both call the same methods."""

    def __init__(self, side: Side, first: bool) -> None:
        self._side, self._first = side, first

    def agreed(self, value: T) -> T:
        """The value of the measuring side, on both sides."""
        comm, partner = self._side.comm, self._side.partner
        if not self._first:
            return comm.recv(source=partner, tag=CONTROL)
        comm.send(value, partner, CONTROL)
        return value

    def exchange(self, m: int, most: int) -> Exchange:
        """All turns of one size."""
        for _ in range(2):  # connects, and warms buffers
            each = self.agreed(max(self._in_turn(m, 1), self._at_once(m, 1)))
        trips = math.ceil(TURN / each)
        turns = range(round(min(max(ROOM / (trips * each), LEAST), most)))
        loop = turns_of(LONGER * each) if m < SMALL else 0
        rows = [
            (self._in_turn(m, trips), self._at_once(m, trips), *self._beside(m, trips, loop)) for _ in turns
        ]
        columns = [tuple(column) for column in zip(*rows)]
        in_turn, at_once, alone, beside, left = columns if loop else [*columns, (), (), ()]
        return Exchange(
            measure=self._side.comm.rank,
            mirror=self._side.partner,
            m=m,
            in_turn=in_turn,
            at_once=at_once,
            alone=alone,
            beside=beside,
            left=left,
        )

    def _in_turn(self, m: int, trips: int) -> float:
        """Seconds per message: half a round trip, on the side that begins."""
        return self._mean(lambda: [self._there_and_back(m)], trips)[0] / 2

    def _at_once(self, m: int, trips: int) -> float:
        """Seconds per message while another arrives: the mean of both sides."""
        comm, partner = self._side.comm, self._side.partner
        took = sum(self._mean(lambda: self._both_ways(m, 0), trips))
        return (took + comm.sendrecv(took, partner, CONTROL, None, partner, CONTROL)) / 2

    def _beside(self, m: int, trips: int, loop: int) -> list[float]:
        """Seconds of the loop alone, of the loop while messages travel both ways, of waiting afterwards."""
        if not loop:
            return []
        alone = self._mean(lambda: [counted(loop)], trips)
        return [*alone, *self._mean(lambda: self._both_ways(m, loop)[1:], trips)]

    def _mean(self, trip: Callable[[], list[float]], trips: int) -> list[float]:
        """The mean over trips; each begins with nothing in flight."""
        rows = []
        for _ in range(trips):
            self._side.request() if self._first else self._side.ready()
            rows.append(trip())
        return [max(sum(column) / trips, 1e-9) for column in zip(*rows)]

    def _there_and_back(self, m: int) -> float:
        """Seconds of one round trip."""
        side, start = self._side, time.perf_counter()
        if self._first:
            side.comm.Send(side.out[:m], side.partner, MESSAGE)
        side.comm.Recv(side.into[:m], side.partner, MESSAGE)
        if not self._first:
            side.comm.Send(side.out[:m], side.partner, MESSAGE)
        return time.perf_counter() - start

    def _both_ways(self, m: int, loop: int) -> list[float]:
        """Seconds of starting the messages, of the loop, and of waiting."""
        side, start = self._side, time.perf_counter()
        requests = [
            side.comm.Irecv(side.into[:m], side.partner, MESSAGE),
            side.comm.Isend(side.out[:m], side.partner, MESSAGE),
        ]
        begun = time.perf_counter() - start
        computing, start = counted(loop), time.perf_counter()
        for request in requests:
            request.Wait()
        return [begun, computing, time.perf_counter() - start]
