"""One visit to a probe: units per second of this rank, including emulated slowness.

There are three ways to time a batch of calls:

    processor   processor time: occasional interruptions by other processes do not count (they are reported
                separately, as held back), but their use of caches and memory does
    elapsed     elapsed time, if a rank is held back permanently: by a quota, by a tenant of a lab, or because
                there are more ranks than cores; or if the system counts processor time in ticks. The rate is
                then that over the whole visit
    stretched   elapsed time of one batch, for emulated speeds. The tracer stretches each call like the phases
                of a run, so that others have used the caches since the last call. If a batch was held back
                for longer than it sleeps, its nominal duration counts instead: the least processor time of
                this probe on this host so far, times the factor. This also applies to all batches of factor
                1, which do not sleep

The rate of a visit is that of its median batch, or of its mean batch for elapsed time. Stretched visits have
a single batch: ranks that slept for different times, or computed at the same time more or less often, would
differ by more than the emulated speeds.
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
LEARNT = 4  # unstretched calls before a stretched batch, as a multiple of its calls
Way = Literal["processor", "elapsed", "stretched"]
LOOK, CHANGES = 3e-3, 8  # a clock that changes less often in these seconds counts in ticks
STRETCHED = 0.05  # seconds that a stretched batch should not exceed by much
SLIP = 0.01  # tolerated relative difference of a stretched batch from its nominal duration


def batch_of(way: Way, slowest: float) -> float:
    """Seconds of processor time per batch, if the slowest rank of the host has the factor `slowest`."""
    return min(max(STRETCHED / slowest, SHORTEST), LONGEST) if way == "stretched" else BATCH


def way_of(emulated: bool, ranks: int, cores: int, quota: float | None, lab: bool = False) -> Way:
    """The way to time on a host with `ranks` ranks; `quota` is in CPUs; a `lab` has tenants that delay."""
    if emulated:
        return "stretched"
    held_back = lab or quota is not None or ranks > cores
    return "elapsed" if held_back or counted_in_ticks() else "processor"


def counted_in_ticks() -> bool:
    """Whether the system counts processor time in ticks of milliseconds, as some sandboxes do.

    A call may then seem to take no processor time at all.
    """
    seen, end = {time.thread_time_ns()}, time.perf_counter() + LOOK
    while time.perf_counter() < end and len(seen) <= CHANGES:
        seen.add(time.thread_time_ns())
    return len(seen) <= CHANGES


def _name(probe: Probe) -> tuple[str, ...]:
    return (probe.phase, probe.storage, probe.level)


class Meter:
    """Measures probes on one rank, `batch` seconds of calls at a time."""

    def __init__(self, tracer: TracerLike, slowness: Slowness, way: Way, batch: float) -> None:
        self._tracer, self._slowness = slowness.tracer(tracer), slowness
        self.factor, self.way, self._batch = slowness.factor, way, batch
        self._elapsed = self._due = 0.0
        self._least: dict[tuple[str, ...], float] = {}  # seconds per call of each probe, if stretched
        self._glance = glance_at_clock() * 1e-9

    @property
    def held_back(self) -> float:
        """Fraction of the time of all visits for which this rank was ready to run but had no processor."""
        return max(0.0, 1.0 - self._due / self._elapsed) if self._elapsed else 0.0

    @property
    def spent(self) -> tuple[float, float]:
        """(elapsed seconds, those with a processor) of all visits so far."""
        return self._elapsed, self._due

    def agree(self, host: Comm) -> None:
        """If stretched, use the least time of a call over all ranks of this host, as in runs."""
        if self.way == "stretched":
            keep_least(self._least, host.allgather(self._least))

    def cost(self, probe: Probe) -> float:
        """Seconds per call, of processor time or elapsed, as the way is: the minimum of three."""
        probe.call()
        which = 0 if self.way == "elapsed" else 1
        return max(min(self._timed(probe, 1)[which] for _ in range(3)), 1e-9)

    def calls(self, cost: float) -> int:
        """Calls per batch."""
        return max(1, round(self._batch / cost))

    def shortest_visit(self, cost: float) -> float:
        """The shortest duration of a visit, in seconds: one batch."""
        return self.calls(cost) * cost * self.factor

    def visit(self, probe: Probe, cost: float, seconds: float) -> float:
        """Units per second, from batches that together take `seconds`; if stretched, from one batch."""
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
                os.sched_yield()  # to a rank that shares this core and its caches
        for _ in range(calls):
            elapsed += self._learn(probe)
        least = self._least[_name(probe)]
        due = calls * least * self.factor
        self._elapsed += elapsed
        self._due += due
        return elapsed if abs(elapsed / due - 1) <= SLIP else due

    def _learn(self, probe: Probe) -> float:
        """Elapsed seconds of one call, timed as a separate phase; updates the least time so far."""
        name = _name(probe)
        self._slowness.new_work(name)
        elapsed, used = self._timed(probe, 1)
        self._least[name] = min(max(used - self._glance, 1e-9), self._least.get(name, math.inf))
        return elapsed

    def _timed(self, probe: Probe, calls: int) -> tuple[float, float]:
        """(elapsed seconds, unstretched seconds of processor time) of a batch. Each call is preceded by
        `probe.before`, if there is one, which leaves the caches as in a run; if stretched, other ranks have
        used them anyway."""
        if probe.before is None or self.way == "stretched":
            return self._stamped(probe, calls)
        elapsed = used = 0.0
        for _ in range(calls):
            probe.before()
            one = self._stamped(probe, 1)
            elapsed, used = elapsed + one[0], used + one[1]
        return elapsed, used

    def _stamped(self, probe: Probe, calls: int) -> tuple[float, float]:
        """As `_timed`, for consecutive calls."""
        tracer, call, phase = self._tracer, probe.call, probe.number
        before = tracer.now()
        tracer.begin(phase)
        used = time.thread_time_ns()
        for _ in itertools.repeat(None, calls):
            call()
        used = time.thread_time_ns() - used
        tracer.end(phase)
        return (tracer.now() - before) / tracer.ticks_per_second, used * 1e-9
