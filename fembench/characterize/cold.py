"""Ping-pongs between ranks that compute before each message (see `pingpong`).

    measure                        mirror
    computes                       waits in Probe
    t0, send (Os)  ----- m ----->  Probe returns, receive (Or)
    waits in Probe                 computes for c, by its own clock
    receive (Or)   <---- m ------  send (Os)
    RTT = now - t0 - c

A message right after another one finds its code, its buffers and their address
translations in the caches. A message after computing does not, and takes longer: the
more, the longer the ranks computed, and more so if they swept through memory.
Ping-pongs without computing, in turn with the others, are what they are compared with.
A large message whose time is far longer than that is not measured.
"""

import itertools
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fembench.base.arrays import F64
from fembench.characterize.pingpong import CONTROL, MESSAGE, Side, Times, in_turn, pair_samples
from fembench.ranks.comm import Comm
from fembench.records.network import PairSamples
from fembench.records.sites import Mode

SIZES = (64, 1024, 8192, 65536, 1 << 18, 1 << 19, 1 << 20, 1 << 22)  # bytes
SECONDS = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)  # of computing
LONGEST = 5e-3  # seconds of a message to which computing adds little
CACHED, SWEPT = 8_000, 4 << 20  # numbers that computing uses: in the cache, and beyond it
SHORT = 3e-4  # seconds of computing up to which trips are cheap
# per visit after short and after long computing: before the timed ones, and timed
SETTLING, TRIPS = (2, 1), (6, 2)


class ColdState(NamedTuple):
    """A size, and the computing before each message."""

    m: int
    computed: float
    swept: bool


def states(sizes: Sequence[int]) -> list[ColdState]:
    """All that is measured for these sizes."""
    after = [(0.0, False), *itertools.product(SECONDS, (False, True))]
    return [ColdState(m, *each) for m in sizes for each in after]


def measure_cold(
    comm: Comm, measure: int, mirror: int, sizes: Sequence[int], visits: int, mode: Mode
) -> list[PairSamples]:
    """Ping-pongs of these sizes (as given on `measure`) after computing.

    Call on both ranks; samples on `measure`, else []. Other ranks must be idle.
    """
    first = comm.rank == measure
    partner = mirror if first else measure
    if first:
        comm.send(sizes, partner, CONTROL)
    else:
        sizes = comm.recv(source=partner, tag=CONTROL)
    asked = states(sizes)
    if not asked:
        return []
    side, compute = Side(comm, partner, sizes, mode), Computing()
    found: list[list[Times]] = [[] for _ in asked]
    for visit in range(visits):
        side.renew()
        for k in in_turn(visit, len(asked)):
            found[k].append(_trips(side, compute, asked[k], first))
    mine = [np.concatenate(each) for each in found]
    if not first:
        comm.send(mine, partner, CONTROL)
        return []
    theirs = comm.recv(source=partner, tag=CONTROL)
    return [
        pair_samples((measure, mirror), s, mode, _without(a, b), b) for s, a, b in zip(asked, mine, theirs)
    ]


def _without(mine: Times, theirs: Times) -> Times:
    """(trips, 3) Os, Or and round trip without the mirror's computing."""
    return np.column_stack([mine[:, 0], mine[:, 1], mine[:, 2] - theirs[:, 2]])


class Computing:
    """Computes for a time, in the cache or through memory; returns the time it took, ns."""

    def __init__(self) -> None:
        self._cached, self._memory = np.linspace(0.0, 1.0, CACHED), np.zeros(SWEPT)
        self._at = 0

    def __call__(self, seconds: float, swept: bool) -> int:
        begin = time.perf_counter_ns()
        end = begin + round(1e9 * seconds)
        while seconds and time.perf_counter_ns() < end:
            x = self._next() if swept else self._cached
            x *= 0.999
            x += 1e-6
        return time.perf_counter_ns() - begin

    def _next(self) -> F64:
        """The next piece of memory."""
        self._at = (self._at + CACHED) % (SWEPT - CACHED)
        return self._memory[self._at : self._at + CACHED]


def _trips(side: Side, compute: Computing, state: ColdState, first: bool) -> Times:
    """(trips, 3) Os, Or in ns, and the round trip (mirror: the time of computing). The first
    trips depend on what was measured before."""
    length = int(state.computed > SHORT)
    settling, trips = SETTLING[length], SETTLING[length] + TRIPS[length]
    if first:
        found = side.ping(state.m, trips, lambda: compute(state.computed, state.swept))
    else:
        found = np.array([_back(side, compute, state) for _ in range(trips)], np.int64)
    return found[settling:]


def _back(side: Side, compute: Computing, state: ColdState) -> tuple[int, int, int]:
    now, out, into = time.perf_counter_ns, side.out[state.m], side.into[state.m]
    side.comm.Probe(side.partner, MESSAGE)
    arrived = now()
    side.comm.Recv(into, side.partner, MESSAGE)
    received = now()
    computed = compute(state.computed, state.swept)
    begin = now()
    pending = side.send(out, side.partner, MESSAGE)
    sent = now()
    if pending is not None:
        pending.Wait()
    return sent - begin, received - arrived, computed
