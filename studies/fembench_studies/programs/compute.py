"""Computing at an emulated speed, and waiting for messages without using the processor.

A rank of speed s computes for (minimum processor time of the same work) x dilation / s,
as in a run of the benchmark (synthetic/slowness.py). Ranks that share a core therefore
do not slow each other down, and a waiting rank frees its core. Tasks with the same
number of operations take equally long.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fembench.ranks.comm import Comm
from fembench.synthetic.slowness import FULL_SPEED, TASK, Slowness, slowness_of
from fembench.synthetic.waits import sleep_until

Array = npt.NDArray[np.float64]
T = TypeVar("T")
GLANCE, MOST = 2e-4, 5e-3  # seconds between two polls at full speed, and at most
NAP = 1e-3  # seconds between two progress calls of a sleeping rank


def glance_of(factor: float) -> float:
    """Seconds between two polls for a message on a rank slowed by this factor.

    Waiting ranks poll rarely, because polling takes processor
    time from computing ranks.
    """
    return min(GLANCE * factor, MOST)


def rest_until(comm: Comm, moment: int) -> None:
    """Sleep until `moment` (perf_counter_ns) while messages in flight progress."""
    while moment - time.perf_counter_ns() > 2 * NAP * 1e9:
        comm.Iprobe()
        time.sleep(NAP)
    sleep_until(moment)


def worker_of(comm: Comm, speeds: Sequence[float], dilate: float) -> "Worker":
    """The worker of this rank; `speeds`: [rank]."""
    return Worker(comm, slowness_of(comm.rank, speeds, dilate, wait_until=partial(rest_until, comm)))


class Worker:
    """A rank of a program: it computes at its speed, and sleeps
    while it waits for messages."""

    def __init__(self, comm: Comm, slowness: Slowness = FULL_SPEED) -> None:
        self.comm, self.slowness = comm, slowness
        self.glance = glance_of(slowness.factor)
        self.busy = 0.0  # seconds of computing
        self.done = 0  # tasks

    def compute(self, operation: str, times: float, function: Callable[..., T], *arguments: object) -> T:
        """The function's result, returned after the time of `times`
        operations at this rank's speed."""
        begin = time.perf_counter_ns()
        if times > 0:
            self.slowness.new_work(operation, {TASK: times})
            self.slowness.begin()
            result = function(*arguments)
            self.slowness.end()
        else:  # unknown amount of work
            result = function(*arguments)
        self.busy += (time.perf_counter_ns() - begin) * 1e-9
        return result

    def hold(self, seconds: float) -> None:
        """Occupy the rank for this time, but not its core."""
        if seconds > 0:
            rest_until(self.comm, time.perf_counter_ns() + round(seconds * 1e9))

    def after(self, seconds: float) -> float:
        """The time after this delay, ns; all ranks of a machine share the clock."""
        return float(time.perf_counter_ns() + round(seconds * 1e9))

    def due(self, moment: float) -> bool:
        """Sleep until `moment` if it comes before the next poll (True), otherwise
        until that poll (False)."""
        if (moment - time.perf_counter_ns()) * 1e-9 > self.glance:
            self.look_away()
            return False
        sleep_until(round(moment))
        return True

    def look_away(self) -> None:
        """Sleep until the next poll for messages."""
        time.sleep(self.glance)

    def receive(self, buffer: Array, source: int, tag: int) -> None:
        """Receive a message of known length, asleep."""
        self.arrived(source, tag)
        self.comm.Recv(buffer, source, tag)

    def arrived(self, source: int, tag: int) -> int:
        """Wait for a message, asleep; returns its source."""
        while not self.comm.Iprobe(source, tag):
            time.sleep(self.glance)
        return source

    def finished(self, request: Any) -> None:
        """Wait for a request, asleep."""
        while not request.Test():
            time.sleep(self.glance)

    def meet(self) -> None:
        """Wait for all ranks, asleep: spinning would slow ranks that
        still compute. Collective."""
        self.finished(self.comm.Ibarrier())

    def whose(self, tag: int) -> int:
        """The rank whose message with this tag arrives first; waits asleep."""
        while True:
            for rank in range(self.comm.size):
                if rank != self.comm.rank and self.comm.Iprobe(rank, tag):
                    return rank
            time.sleep(self.glance)
