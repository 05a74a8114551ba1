"""Messages between the ranks of a ring, fork or join before and after it: large there, a few bytes back.

They go between the same ranks and in the same direction as those of the program, each
pair after the others, while all ranks wait in MPI. Both matter: a buffer that several
ranks read in turn travels more slowly. All messages of a rank use the same two buffers.
Other ones follow, in other places of memory: a program has one of these, so how much
the places differ is how far a prediction can be off.
"""

import statistics
import time

from fembench.characterize.pingpong import Side
from fembench.ranks.comm import Comm
from fembench_studies.programs.record import AppCase

TRIP = "round trip"  # of a run's samples, BEFORE and AFTER it
AROUND = BEFORE, AFTER = " before", " after"
SMALL = 8  # bytes back
PLACES = (6, 12)  # of the buffers in memory: at least, and at most
TRIPS, WARM = 15, 3  # at each place, timed and before these
LONG = 1.0  # seconds after which no further place is tried


def ends_of(case: AppCase) -> list[tuple[int, int]]:
    """The two ranks of each message between ranks, in the order of the edges."""
    return [(case.host[a], case.host[b]) for a, b in case.edges if case.host[a] != case.host[b]]


def partners(case: AppCase) -> dict[int, int]:
    """{rank that times: the other rank}: the next in a ring; rank 0 in a fork or join."""
    ends = ends_of(case)
    return {q: p for p, q in ends} if case.program == "fork" else dict(ends)


def round_trips(comm: Comm, case: AppCase) -> list[float]:
    """Seconds of a message of the case's size and one of SMALL bytes in the other
    direction, at each place of the buffers; [] on a rank that times no pair.
    Collective."""
    there, back = (SMALL, case.n_bytes) if case.program == "fork" else (case.n_bytes, SMALL)
    sides = {
        pair: Side(comm, sum(pair) - comm.rank, (there, back), case.calls or "isend")
        for pair in partners(case).items()
        if comm.rank in pair
    }
    found: list[list[float]] = []
    begin = time.perf_counter()
    for place in range(PLACES[1]):
        if not comm.bcast(place < PLACES[0] or time.perf_counter() - begin < LONG):
            break
        _renew(list(sides.values()))
        found.append([])
        for _ in range(WARM + TRIPS):
            for (first, _), side in sides.items():
                if comm.rank == first:
                    found[-1].append(1e-9 * side.ping(there, 1, back=back)[0, 2])
                else:
                    side.pong(there, 1, back=back)
    return [float(statistics.median(trips[WARM:])) for trips in found if trips]


def _renew(sides: list[Side]) -> None:
    """Other buffers, the same for all partners."""
    for side in sides[:1]:
        side.renew()
    for side in sides[1:]:
        side.out, side.into = sides[0].out, sides[0].into
