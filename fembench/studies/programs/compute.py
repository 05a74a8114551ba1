"""Computing at an emulated speed, and messages that are waited for asleep.

A rank of speed s computes for (the least processor time that as much work takes) x dilation / s, as in a
benchmark's run (synthetic/emulate.py); ranks that share a core therefore do not disturb each other, and a
rank that waits gives its core away. Tasks that do as many operations last equally long.
"""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fembench.host.where import host_key
from fembench.ranks.comm import Comm
from fembench.synthetic.emulate import MOST_LATE, keep_least, sleep_until

Array = npt.NDArray[np.float64]
T = TypeVar("T")
GLANCE, MOST = 2e-4, 5e-3  # seconds between two looks for a message; longer where ranks are dilated
NAP = 1e-3  # of a rank that is stretched


def glance_of(factor: float) -> float:
    """Seconds between two looks for a message, of a rank that is so many times stretched.

    Ranks that wait look rarely: looking takes the cores from those that compute.
    """
    return min(GLANCE * factor, MOST)


class Worker:
    """A rank's clock and its speed. Made by all ranks together."""

    def __init__(self, comm: Comm, factor: float) -> None:
        self.comm, self.factor = comm, factor
        self.any_emulated = bool(comm.allreduce(float(factor != 1.0)))
        self.glance = glance_of(factor)
        self.busy = 0.0  # seconds of computing
        self.done = 0  # tasks
        self._least: dict[str, float] = {}  # ns of processor time of one operation
        self._agreed: frozenset[str] = frozenset()  # operations that go by what the ranks of the host found
        self._late = 0

    def compute(self, operation: str, times: float, function: Callable[..., T], *arguments: object) -> T:
        """The function's result, after as long as so many operations take at this rank's speed."""
        begin = time.perf_counter_ns()
        result = self.time(operation, times, function, *arguments)
        if self.factor != 1.0 and times > 0:
            due = begin + round(self._least[operation] * times * self.factor) - self._late
            self.rest_until(due)
            self._late = min(time.perf_counter_ns() - due, MOST_LATE)
        self.busy += (time.perf_counter_ns() - begin) * 1e-9
        return result

    def time(self, operation: str, times: float, function: Callable[..., T], *arguments: object) -> T:
        """The function's result at once; what one operation took is remembered if it is the least."""
        used = time.thread_time_ns()
        result = function(*arguments)
        if times > 0 and operation not in self._agreed:
            each = (time.thread_time_ns() - used) / times
            self._least[operation] = min(each, self._least.get(operation, each))
        return result

    def agree(self) -> None:
        """From now on the ranks of a host go by the least time of an operation on any of them. Collective."""
        if not self.any_emulated:
            return
        here = host_key()
        everyone = self.comm.allgather((here, self._least))
        keep_least(self._least, [other for name, other in everyone if name == here])
        self._agreed = frozenset(self._least)

    def rest_until(self, moment: int) -> None:
        """Sleep until `moment` (perf_counter_ns); messages in flight go on meanwhile."""
        while moment - time.perf_counter_ns() > 2 * NAP * 1e9:
            self.comm.Iprobe()
            time.sleep(NAP)
        sleep_until(moment)

    def hold(self, seconds: float) -> None:
        """The rank can do nothing else for so long; its core is free for others."""
        if seconds > 0:
            self.rest_until(time.perf_counter_ns() + round(seconds * 1e9))

    def after(self, seconds: float) -> float:
        """The moment so much later, ns; the same on all ranks of one machine."""
        return float(time.perf_counter_ns() + round(seconds * 1e9))

    def due(self, moment: float) -> bool:
        """Whether it comes before the next look for messages: then after it; else after a short rest."""
        if (moment - time.perf_counter_ns()) * 1e-9 > self.glance:
            self.look_away()
            return False
        sleep_until(round(moment))
        return True

    def look_away(self) -> None:
        """Rest until the next look for messages."""
        time.sleep(self.glance)

    def receive(self, buffer: Array, source: int, tag: int) -> None:
        """A message of known length; the core is free meanwhile."""
        self.arrived(source, tag)
        self.comm.Recv(buffer, source, tag)

    def arrived(self, source: int, tag: int) -> int:
        """Wait for a message and say whose it is."""
        while not self.comm.Iprobe(source, tag):
            time.sleep(self.glance)
        return source

    def finished(self, request: Any) -> None:
        """Wait for a request; the core is free meanwhile."""
        while not request.Test():
            time.sleep(self.glance)

    def meet(self) -> None:
        """Wait for all ranks, asleep: spinning, a rank would take its core from those that still compute."""
        self.finished(self.comm.Ibarrier())

    def whose(self, tag: int) -> int:
        """The rank whose message with this tag is here first."""
        while True:
            for rank in range(self.comm.size):
                if rank != self.comm.rank and self.comm.Iprobe(rank, tag):
                    return rank
            time.sleep(self.glance)
