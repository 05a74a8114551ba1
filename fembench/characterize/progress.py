"""Progress of messages while no rank is in MPI; slowdown by a rank waiting on a core.

overlap    both sides begin a large non-blocking message, compute for twice the time that it takes, then wait:
           the remaining wait over its time without computing. 0: it travelled meanwhile; 1: it did not
polling    two ranks on one core: the time of one that computes while the other waits in MPI, over its time
           while the other sleeps (Mendes 2004, 5.2). 1: a waiting rank leaves the core; 2: it takes half
"""

import contextlib
import os
import time
from collections.abc import Iterator

import numpy as np

from fembench.characterize.pingpong import CONTROL, EMPTY, MESSAGE, Side
from fembench.ranks.comm import Comm

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
