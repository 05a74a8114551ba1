"""Offsets between the clocks of hosts, by ping-pong.

Rank 0 sends to the first rank of every other host, which answers with the reading of
its clock. The reading was taken between sending and receiving, so the offset is known
to half a round trip; the shortest of many counts (D. L. Mills, Internet time
synchronization, IEEE Trans. Commun. 39 (1991) 1482-1493). Offsets are measured before
and after the sets, and interpolated in between.

Readings are ticks since the origin of the rank's own tracer. Ticks of different hosts
are never subtracted: they become seconds first, each at its own rate.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from fembench.ranks.comm import Comm
from fembench.records.record import ClockOffset
from fembench.timing.tracer import TracerLike

ROUNDS = 200
_TAG = 11


class Sight(Struct, frozen=True):
    """The shortest of many round trips to one rank."""

    rank: int
    here: float  # ticks of rank 0's clock in its middle
    trip: int  # ticks of rank 0's clock that it took
    there: int  # ticks of the other clock


class Offset(Struct, frozen=True):
    """The offset of a host's clock, seconds; by default zero, as on rank 0's host."""

    host: int
    times: tuple[float, float] = (0.0, 1.0)  # by its own clock, of the two estimates
    ahead: tuple[float, float] = (0.0, 0.0)
    uncertainty: float = 0.0

    def common(self, moment: float) -> float:
        """A time on this host's clock, converted to that of rank 0's host."""
        return moment - float(np.interp(moment, self.times, self.ahead))

    def in_record(self) -> ClockOffset:
        drift = (self.ahead[1] - self.ahead[0]) / (self.times[1] - self.times[0])
        return ClockOffset(
            host=self.host,
            before=self.ahead[0],
            after=self.ahead[1],
            uncertainty=self.uncertainty,
            drift=drift,
        )


def sights(comm: Comm, tracer: TracerLike, leaders: Sequence[int], rounds: int = ROUNDS) -> list[Sight]:
    """One per leader but rank 0, on rank 0; empty elsewhere. Collective over leaders."""
    if comm.rank == 0:
        return [_see(comm, tracer, rank, rounds) for rank in leaders if rank]
    if comm.rank in leaders:
        _answer(comm, tracer, rounds)
    return []


def _see(comm: Comm, tracer: TracerLike, rank: int, rounds: int) -> Sight:
    now, answer, trips = tracer.now, np.zeros(1, np.int64), []
    for _ in range(rounds):
        begin = now()
        comm.Send(answer, rank, _TAG)
        comm.Recv(answer, rank, _TAG)
        trips.append((now() - begin, begin, int(answer[0])))
    trip, begin, there = min(trips)
    return Sight(rank, begin - tracer.origin + trip / 2, trip, there)


def _answer(comm: Comm, tracer: TracerLike, rounds: int) -> None:
    stamp = np.zeros(1, np.int64)
    for _ in range(rounds):
        comm.Recv(stamp, 0, _TAG)
        stamp[0] = tracer.now() - tracer.origin
        comm.Send(stamp, 0, _TAG)


def offset_of(before: Sight, after: Sight, rate: float, other_rate: float, host: int) -> Offset:
    """The offset from two estimates, at `rate` and `other_rate` ticks per second."""
    both = (before, after)
    return Offset(
        host=host,
        times=(before.there / other_rate, after.there / other_rate),
        ahead=(
            before.there / other_rate - before.here / rate,
            after.there / other_rate - after.here / rate,
        ),
        uncertainty=max(s.trip for s in both) / 2 / rate,
    )
