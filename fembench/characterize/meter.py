"""One visit to a probe: units per second of this rank, emulated slowness included.

There are three ways to time a batch of calls:

    processor   processor time: what others on the machine take from a rank now and then does not count
                (it is reported apart, as held back); caches and memory that they fill do
    elapsed     where a rank is kept from its processor all the time, by a quota, a lab's tenant, or because
                the ranks are more than the cores: then it is as fast as it gets on, the whole visit through
    stretched   emulated: elapsed, one batch, each call stretched by the tracer as a run's phases are: others
                have had the caches since the last. Where they held it back for longer than its sleeps, it
                counts as long as it should have lasted: the least processor time of this probe on this host
                so far x factor. So does every batch of factor 1, which has no sleep

The rate of a visit is that of its median batch; of the mean batch where elapsed time counts. Stretched
visits have one batch each because ranks that slept for different times, or met each other at work more
or less often, would show more than the speeds injected.
"""

import itertools
import math
import os
import statistics
import time
from typing import Literal

from fembench.characterize.probes import Probe
from fembench.ranks.comm import Comm
from fembench.synthetic.slowness import Slowness, keep_least
from fembench.synthetic.waits import glance_at_clock
from fembench.timing.tracer import TracerLike

BATCH = 1e-3  # seconds of calls between two stamps
SHORTEST, LONGEST = 3e-4, 3e-3  # seconds of processor time in a stretched batch
LEARNT = 4  # times the calls of a stretched batch that are made before, not stretched
Way = Literal["processor", "elapsed", "stretched"]
STRETCHED = 0.05  # seconds that a stretched batch should not exceed by much
SLIP = 0.01  # part by which a stretched batch may differ from what it should last


def batch_of(way: Way, slowest: float) -> float:
    """Seconds of processor time per batch, if the slowest rank of the host has the factor `slowest`."""
    return min(max(STRETCHED / slowest, SHORTEST), LONGEST) if way == "stretched" else BATCH


def way_of(emulated: bool, ranks: int, cores: int, quota: float | None, lab: bool = False) -> Way:
    """The way to time on a host with this many ranks; `quota` in CPUs; in a lab, others may delay it."""
    if emulated:
        return "stretched"
    return "elapsed" if lab or quota is not None or ranks > cores else "processor"


def _name(probe: Probe) -> tuple[str, ...]:
    return (probe.phase, probe.storage, probe.level)


class Meter:
    """Measures probes on one rank, `batch` seconds of calls at a time."""

    def __init__(self, tracer: TracerLike, slowness: Slowness, way: Way, batch: float) -> None:
        self._tracer, self._slowness = slowness.tracer(tracer), slowness
        self.factor, self.way, self._batch = slowness.factor, way, batch
        self._elapsed = self._due = 0.0
        self._least: dict[tuple[str, ...], float] = {}  # seconds of a call of a probe, where stretched
        self._glance = glance_at_clock() * 1e-9

    @property
    def held_back(self) -> float:
        """Fraction of the time of all visits in which this rank was ready to run but had no processor."""
        return max(0.0, 1.0 - self._due / self._elapsed) if self._elapsed else 0.0

    def agree(self, host: Comm) -> None:
        """If stretched, use the least time of a call on any rank of this host, as runs do."""
        if self.way == "stretched":
            keep_least(self._least, host.allgather(self._least))

    def cost(self, probe: Probe) -> float:
        """Seconds of processor time per call: the least of three."""
        probe.call()
        return max(min(self._timed(probe, 1)[1] for _ in range(3)), 1e-9)

    def calls(self, cost: float) -> int:
        """Calls per batch."""
        return max(1, round(self._batch / cost))

    def shortest_visit(self, cost: float) -> float:
        """Shortest duration of a visit, in seconds: one batch."""
        return self.calls(cost) * cost * self.factor

    def visit(self, probe: Probe, cost: float, seconds: float) -> float:
        """Units per second, from batches that together fill `seconds`; if stretched, from one."""
        calls = self.calls(cost)
        if self.way == "stretched":
            return calls * probe.units / self._stretched_seconds(probe, calls)
        batches: list[float] = []
        end = time.perf_counter() + seconds
        while not batches or time.perf_counter() < end:
            batches.append(self._batch_seconds(probe, calls))
        middle = statistics.fmean(batches) if self.way == "elapsed" else statistics.median(batches)
        return calls * probe.units / middle

    def _batch_seconds(self, probe: Probe, calls: int) -> float:
        elapsed, used = self._timed(probe, calls)
        due = used * self.factor
        self._elapsed += elapsed
        self._due += due
        return elapsed if self.way == "elapsed" else due

    def _stretched_seconds(self, probe: Probe, calls: int) -> float:
        elapsed = 0.0
        with self._slowness.learning():
            for _ in range(LEARNT * calls):
                self._learn(probe)
                os.sched_yield()  # to a rank that shares this core, and its caches
        for _ in range(calls):
            elapsed += self._learn(probe)
        least = self._least[_name(probe)]
        due = calls * least * self.factor
        self._elapsed += elapsed
        self._due += due
        return elapsed if abs(elapsed / due - 1) <= SLIP else due

    def _learn(self, probe: Probe) -> float:
        """Elapsed seconds of one call, as a phase of its own; remembered if it is the least so far."""
        name = _name(probe)
        self._slowness.new_work(name)
        elapsed, used = self._timed(probe, 1)
        self._least[name] = min(max(used - self._glance, 1e-9), self._least.get(name, math.inf))
        return elapsed

    def _timed(self, probe: Probe, calls: int) -> tuple[float, float]:
        """Seconds (elapsed, of processor time unstretched) of a batch. Where stretched, others have had the
        caches since; else the calls of a run before each have them, if the probe knows of any."""
        if probe.before is None or self.way == "stretched":
            return self._stamped(probe, calls)
        elapsed = used = 0.0
        for _ in range(calls):
            probe.before()
            one = self._stamped(probe, 1)
            elapsed, used = elapsed + one[0], used + one[1]
        return elapsed, used

    def _stamped(self, probe: Probe, calls: int) -> tuple[float, float]:
        """Like _timed, for consecutive calls."""
        tracer, call, phase = self._tracer, probe.call, probe.number
        before = tracer.now()
        tracer.begin(phase)
        used = time.thread_time_ns()
        for _ in itertools.repeat(None, calls):
            call()
        used = time.thread_time_ns() - used
        tracer.end(phase)
        return (tracer.now() - before) / tracer.ticks_per_second, used * 1e-9
