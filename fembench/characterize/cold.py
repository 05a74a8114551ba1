"""Messages of ranks that compute: cold caches, progress meanwhile, waiting on a shared core.

Ping-pongs between ranks that compute before each message (see `pingpong`):

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

Progress of messages while no rank is in MPI; slowdown by a rank waiting on a core:

overlap    both sides begin a large non-blocking message, compute for twice the time that it takes, then wait:
           the remaining wait over its time without computing. 0: it travelled meanwhile; 1: it did not
polling    two ranks on one core: the time of one that computes while the other waits in MPI, over its time
           while the other sleeps (Mendes 2004, 5.2). 1: a waiting rank leaves the core; 2: it takes half
"""

import contextlib
import itertools
import os
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fembench.base.arrays import F64
from fembench.characterize.pingpong import CONTROL, EMPTY, MESSAGE, Side, Times, in_turn, pair_samples
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
    side = Side(comm, partner, sizes, mode)
    compute = Computing()
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
        self._cached = np.linspace(0.0, 1.0, CACHED)
        self._memory = np.zeros(SWEPT)
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
    settling = SETTLING[length]
    trips = SETTLING[length] + TRIPS[length]
    if first:
        found = side.ping(state.m, trips, lambda: compute(state.computed, state.swept))
    else:
        found = np.array([_back(side, compute, state) for _ in range(trips)], np.int64)
    return found[settling:]


def _back(side: Side, compute: Computing, state: ColdState) -> tuple[int, int, int]:
    now = time.perf_counter_ns
    out = side.out[state.m]
    into = side.into[state.m]
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


REPEATS = 5
WORK = 0.02  # seconds of computing next to a waiting rank
NAP = 2e-3  # seconds between two tests by a sleeping rank
LONGER = 2.0  # time of computing over that of the message


def overlap_left(comm: Comm, sender: int, receiver: int, m: int) -> float | None:
    """The part of a message's time that remains after computing; None on the sender."""
    side = Side(comm, receiver if comm.rank == sender else sender, (m,))
    alone = [_wait_after(side, sender, 0.0) for _ in range(REPEATS)]
    took = comm.recv(source=receiver, tag=CONTROL) if comm.rank == sender else float(np.median(alone))
    if comm.rank == receiver:
        comm.send(took, sender, CONTROL)
    left = [_wait_after(side, sender, LONGER * took) for _ in range(REPEATS)]
    return float(np.median(left)) / took if comm.rank == receiver else None


def _wait_after(side: Side, sender: int, computing: float) -> float:
    """Seconds in MPI_Wait after `computing` seconds of computing."""
    (m,) = side.sizes
    if side.comm.rank == sender:
        side.request()
        pending = side.comm.Isend(side.out[m], side.partner, MESSAGE)
    else:
        pending = side.comm.Irecv(side.into[m], side.partner, MESSAGE)
        side.ready()
    end = time.perf_counter() + computing
    while time.perf_counter() < end:
        pass
    start = time.perf_counter()
    pending.Wait()
    return time.perf_counter() - start


def polling_factor(comm: Comm, computing: int, waiting: int) -> float | None:
    """The polling factor, on `computing`; None elsewhere, or if no core can be shared."""
    partner = waiting if comm.rank == computing else computing
    with _on_one_core(comm, computing, partner) as together:
        if not together:
            return None
        if comm.rank == waiting:
            for _ in range(REPEATS):
                _wait_asleep(comm, computing)
                # waits like the ranks of a run; a pickled recv would spin in a probe
                comm.Recv(EMPTY, computing, CONTROL)
            return None
        turns = turns_of(WORK)
        found = [(_timed(turns, comm, waiting), _timed(turns, comm, waiting)) for _ in range(REPEATS)]
    alone, beside = np.median(found, axis=0)
    return float(beside / alone)


@contextlib.contextmanager
def _on_one_core(comm: Comm, chooser: int, partner: int) -> Iterator[bool]:
    """Both ranks bound to one core, if permitted; their binding is restored afterwards."""
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    core = min(before, default=-1)
    if comm.rank == chooser:
        comm.send(core, partner, CONTROL)
    else:
        core = comm.recv(source=chooser, tag=CONTROL)
    mine = False
    with contextlib.suppress(OSError):
        if core >= 0:
            os.sched_setaffinity(0, {core})
            mine = True
    try:
        yield comm.sendrecv(mine, partner, CONTROL, None, partner, CONTROL) and mine
    finally:
        if mine:
            os.sched_setaffinity(0, before)


def turns_of(seconds: float) -> int:
    """The number of turns of a loop that takes about `seconds`."""
    turns, took = 1000, 0.0
    while took < seconds / 4:
        turns *= 2
        took = counted(turns)
    return max(1, int(turns * seconds / took))


def counted(turns: int) -> float:
    """Seconds of a loop with `turns` turns."""
    value, start = 0, time.perf_counter()
    while value < turns:
        value += 1
    return time.perf_counter() - start


def _timed(turns: int, comm: Comm, waiting: int) -> float:
    """Seconds of the loop; then wakes the other rank, which sleeps or waits in MPI."""
    took = counted(turns)
    comm.Send(EMPTY, waiting, CONTROL)
    return took


def _wait_asleep(comm: Comm, source: int) -> None:
    while not comm.Iprobe(source, CONTROL):
        time.sleep(NAP)
    comm.Recv(EMPTY, source, CONTROL)
