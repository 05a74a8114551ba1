"""Messages both ways at once, as between neighbours: while both wait or compute.

The two directions of a network are not always independent: acknowledgements travel on
both, and one processor and one card may serve both. Before each message and each
exchange, both sides make sure that nothing is in flight: earlier data may still be
queued, and the request of a large message would wait behind it. The mirror is ready
slightly earlier; the mean of both sides' times cancels this.

While a rank computes, the system handles its messages on the same processor: a loop
takes longer than alone (availability: Lawry et al., COMB, 2002), and the rank still has
to receive the messages afterwards. Turns of all kinds alternate, so a disturbance
affects all.

Also measured: all-reduces, and messages of several pairs at once.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from fembench.characterize.cold import LONGER, counted, turns_of
from fembench.characterize.pingpong import CONTROL, MESSAGE, Side
from fembench.ranks.comm import MAX, Comm
from fembench.ranks.interface import AllReduce
from fembench.records.network import AllReduceTime, Exchange
from fembench.stats.summary import median_interval
from fembench.timing.tracer import NullTracer

SIZES = (1024, 8192, 32768, 131072, 1 << 20)  # bytes
SMALL = 65536  # bytes from which messages wait for their receivers
TURN = 5e-3  # seconds of messages per turn
ROOM = 1.0  # seconds of turns per kind and size
LEAST = 4  # turns
T = TypeVar("T")


def measure_exchange(comm: Comm, measure: int, mirror: int, largest: int, most: int) -> list[Exchange]:
    """Up to `most` turns of messages per size up to `largest` bytes, as given on `measure`.

    Call on both ranks; the result on `measure`, else []. Other ranks must be idle.
    """
    first = comm.rank == measure
    pair = _ExchangeRank(Side(comm, mirror if first else measure, SIZES), first)
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
        """Seconds of the loop alone, of the loop beside messages, of waiting then."""
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
            side.comm.Send(side.out[m], side.partner, MESSAGE)
        side.comm.Recv(side.into[m], side.partner, MESSAGE)
        if not self._first:
            side.comm.Send(side.out[m], side.partner, MESSAGE)
        return time.perf_counter() - start

    def _both_ways(self, m: int, loop: int) -> list[float]:
        """Seconds of starting the messages, of the loop, and of waiting."""
        side, start = self._side, time.perf_counter()
        requests = [
            side.comm.Irecv(side.into[m], side.partner, MESSAGE),
            side.comm.Isend(side.out[m], side.partner, MESSAGE),
        ]
        begun = time.perf_counter() - start
        computing, start = counted(loop), time.perf_counter()
        for request in requests:
            request.Wait()
        return [begun, computing, time.perf_counter() - start]


BATCH = 2e-3  # seconds of all-reduces between two stamps
WARM = 5
Pairs = tuple[tuple[int, int], ...]


def allreduce_time(comm: Comm, m: int, batches: int) -> AllReduceTime:
    """The time of an all-reduce of m bytes in a sequence as in CG. Collective."""
    run = AllReduce(comm, m // 8, NullTracer()).run
    start = time.perf_counter()
    for _ in range(WARM):
        run()
    each = comm.bcast((time.perf_counter() - start) / WARM)
    turns = max(3, min(math.ceil(BATCH / each), 200))
    took = np.empty(batches)
    for k in range(batches):
        comm.Barrier()
        start = time.perf_counter()
        for _ in range(turns):
            run()
        took[k] = (time.perf_counter() - start) / turns
    slowest = np.empty_like(took)
    comm.Allreduce(took, slowest, MAX)
    interval = median_interval(slowest)
    return AllReduceTime(
        ranks=comm.size,
        m=m,
        seconds=float(np.median(slowest)),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
    )


def pairs_at_once(hosts: Sequence[int]) -> list[tuple[str, Pairs]]:
    """(place, pairs that can communicate at once), for ranks on hosts[rank].

    Inside a host, between two hosts, between hosts all different. Only sets of two or
    more.
    """
    ranks: dict[int, list[int]] = {}
    for rank, host in enumerate(hosts):
        ranks.setdefault(host, []).append(rank)
    by_size = sorted(ranks.values(), key=len, reverse=True)
    one = by_size[0]
    first = [members[0] for members in ranks.values()]
    found: list[tuple[str, Pairs]] = [("inside", tuple(zip(one[::2], one[1::2])))]
    if len(by_size) > 1:
        found.append(("between", tuple(zip(one, by_size[1]))))
    found.append(("apart", tuple(zip(first[::2], first[1::2]))))
    return [(where, pairs) for where, pairs in found if len(pairs) > 1]


def counts_of(pairs: Pairs) -> list[int]:
    """The numbers of pairs to measure at once: 2, 4, … and all."""
    powers = [1 << k for k in range(1, len(pairs).bit_length()) if 1 << k < len(pairs)]
    return [*powers, len(pairs)]


def message_seconds(comm: Comm, pairs: Pairs, m: int, trips: int) -> list[float]:
    """Seconds of messages of m bytes, all pairs at once, on first ranks; [] elsewhere.

    Call on the ranks of the pairs, after a barrier.
    """
    pair = next(pair for pair in pairs if comm.rank in pair)
    out, into = np.ones(m, np.uint8), np.zeros(m, np.uint8)
    if comm.rank == pair[1]:
        for _ in range(trips):
            comm.Recv(into, pair[0], MESSAGE)
            comm.Send(out, pair[0], MESSAGE)
        comm.recv(source=pair[0], tag=CONTROL)
        return []
    times = np.empty(trips)
    for k in range(trips):
        start = time.perf_counter()
        comm.Send(out, pair[1], MESSAGE)
        comm.Recv(into, pair[1], MESSAGE)
        times[k] = (time.perf_counter() - start) / 2
    comm.send(None, pair[1], CONTROL)
    return times.tolist()
