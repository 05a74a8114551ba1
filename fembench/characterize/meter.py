"""One visit to a probe: units per second of this rank, including emulated slowness.

There are three ways to time calls:

    processor   processor time: occasional interruptions by other processes do not count (they are reported
                separately, as held back), but their use of caches and memory does
    elapsed     elapsed time, if a rank is held back permanently: by a quota, by a tenant of a lab, or because
                there are more ranks than cores; or if the system counts processor time in ticks. The rate is
                then that over the whole visit; of calls that follow others, the processor time, stretched
                as the whole visit is
    stretched   the least processor time that a call of this probe has taken on this host so far, times the
                emulated factor: what phases of a run last whose times are emulated. Nobody waits meanwhile.
                Where ranks compute on devices and on cores, computing takes the median over ranks of the
                least of their kind, as in a run; copies of messages keep their own time, and are not slowed

The rate of a visit is that of its median batch, or of its mean batch for elapsed time.

What `fembench characterize` and `fembench nodes` have in common is also here: all ranks
survey their hosts, and rank 0 gets what they found, and what others took meanwhile.
"""

import itertools
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import numpy as np

from fembench.base.arrays import F64
from fembench.bench.describe import describe
from fembench.characterize.jobs import CharacterizeJob, NodesJob
from fembench.characterize.probes import Probe
from fembench.host.host import host_facts, taken_meter
from fembench.host.others import others_meter
from fembench.launch.job import Tell
from fembench.ranks.comm import Comm, doze
from fembench.records.phases import COMPUTING
from fembench.records.record import Environment, HostFacts
from fembench.solve.operators import RankDevice
from fembench.synthetic.slowness import keep_least
from fembench.synthetic.waits import glance_at_clock
from fembench.timing.tracer import TracerLike

BATCH = 1e-3  # seconds of calls between two stamps
EMPTY = 9  # calls of nothing
LEARNT = 5  # times as many calls, timed one by one, in a stretched visit
Way = Literal["processor", "elapsed", "stretched"]
LOOK, CHANGES = 3e-3, 8  # a clock that changes less often in these seconds counts in ticks


def way_of(
    emulated: bool, ranks: int, cores: int, quota: float | None, lab: bool = False, on_device: bool = False
) -> Way:
    """The way to time on a host; `quota` is in CPUs; a `lab` has tenants that delay.

    `on_device`: the rank waits for a device, which needs no time of a processor.
    """
    if emulated:
        return "stretched"
    held_back = lab or on_device or quota is not None or ranks > cores
    return "elapsed" if held_back or counted_in_ticks() else "processor"


def counted_in_ticks() -> bool:
    """Whether processor time is counted in ticks of milliseconds, as in some sandboxes.

    A call may then seem to take no processor time at all.
    """
    seen = {time.thread_time_ns()}
    end = time.perf_counter() + LOOK
    while time.perf_counter() < end and len(seen) <= CHANGES:
        seen.add(time.thread_time_ns())
    return len(seen) <= CHANGES


class Meter:
    """Measures probes on one rank; if stretched, it is slower by `factor`."""

    def __init__(
        self,
        tracer: TracerLike,
        way: Way,
        factor: float = 1.0,
        batch: float = BATCH,
        *,
        on_device: bool = False,
    ) -> None:
        """`batch`: seconds of calls between two stamps; `on_device`: elapsed time is used time."""
        self._clock_ns = time.perf_counter_ns if on_device else time.thread_time_ns
        self._kind = "device" if on_device else "cores"
        self._kinds: Sequence[str] = [self._kind]  # of the ranks of this host
        # whether processor time says what an elapsed time is made of
        self._charged = way == "elapsed" and not on_device and not counted_in_ticks()
        self._tracer = tracer
        self.way = way
        self.factor = factor
        self._batch = batch
        self._elapsed = self._due = 0.0
        self._least: dict[tuple[str, ...], float] = {}  # seconds per call by probe and kind, if stretched
        self._glance = glance_at_clock() * 1e-9
        self._empty: dict[Callable[[], object], F64] = {}  # after each `before`

    @property
    def held_back(self) -> float:
        """Fraction of the time of all visits in which this rank waited for a processor."""
        return max(0.0, 1.0 - self._due / self._elapsed) if self._elapsed else 0.0

    @property
    def spent(self) -> tuple[float, float]:
        """(elapsed seconds, those with a processor) of all visits so far."""
        return self._elapsed, self._due

    def agree(self, host: Comm) -> None:
        """If stretched, use the least times over all ranks of this host, by kind. Collective."""
        if self.way == "stretched":
            self._kinds, found = zip(*host.allgather((self._kind, self._least)))
            keep_least(self._least, found)

    def cost(self, probe: Probe) -> float:
        """Seconds per call, processor or elapsed time, as the way is: the least of three."""
        probe.call()
        which = 0 if self.way == "elapsed" else 1
        return max(min(self._timed(probe, 1)[which] for _ in range(3)), 1e-9)

    def calls(self, cost: float) -> int:
        """Calls per batch; if stretched, per visit."""
        batch = self._batch * (LEARNT if self.way == "stretched" else 1)
        return max(1, round(batch / cost))

    def visit(self, probe: Probe, cost: float, seconds: float, host: Comm | None = None) -> float:
        """Units per second, from batches that together take `seconds`.

        If stretched, ranks of `host` make this visit together and agree.
        """
        calls = self.calls(cost)
        if self.way == "stretched":
            self._learn(probe, calls)
            if host is not None:
                self.agree(host)
            return probe.units / self._stretched(probe)
        if probe.before and self._charged:
            return probe.units / self._while_held_back(probe, seconds)
        calls = 1 if probe.before else calls  # a batch would be as long as many calls of both
        batches: list[float] = []
        end = time.perf_counter() + seconds
        while not batches or time.perf_counter() < end:
            batches.append(self._batch_seconds(probe, calls))
        middle = statistics.fmean(batches) if self.way == "elapsed" else statistics.median(batches)
        return calls * probe.units / middle

    def _while_held_back(self, probe: Probe, seconds: float) -> float:
        """Seconds of a call after another: its processor time, stretched as the whole visit is.

        A quota takes effect where the clock is read, so that the time between two readings would
        contain what is withheld for the call before.
        """
        begin, busy = time.perf_counter(), self._clock_ns()
        found = [self._timed(probe, 1)]
        while time.perf_counter() < begin + seconds:
            found.append(self._timed(probe, 1))
        whole, busy = time.perf_counter() - begin, self._clock_ns() - busy
        self._elapsed += whole
        self._due += busy * 1e-9
        return statistics.median(used for _, used in found) * whole / (busy * 1e-9)

    def _batch_seconds(self, probe: Probe, calls: int) -> float:
        elapsed, used = self._timed(probe, calls)
        self._elapsed += elapsed
        self._due += used
        return elapsed if self.way == "elapsed" else used

    def _learn(self, probe: Probe, calls: int) -> None:
        """Keep the least processor time of these calls, if it is the least on ranks of this kind so far."""
        name = (*_name(probe), self._kind)
        for _ in range(calls):
            used = self._timed(probe, 1)[1]
            if used > 0:  # else the clock of the thread stood still
                self._least[name] = min(used, self._least.get(name, math.inf))
            os.sched_yield()  # to a rank that shares this core and its caches

    def _stretched(self, probe: Probe) -> float:
        """Seconds of a call in a run."""
        computes = probe.number in COMPUTING
        kinds = self._kinds if computes else [self._kind]
        found = (self._least.get((*_name(probe), kind), 1e-9) for kind in kinds)
        return (self.factor if computes else 1.0) * statistics.median(found)

    def _timed(self, probe: Probe, calls: int) -> tuple[float, float]:
        """(elapsed seconds, seconds of processor time) of a batch.

        Each call, or each of its two parts, is preceded by `probe.before`, if there is one,
        for caches as in a run.
        """
        if probe.before is None:
            return self._stamped(probe.call, probe.number, calls)
        parts = [part for part in (probe.call, probe.then) if part]
        found = np.zeros(2)
        for _ in range(calls):
            for part in parts:
                probe.before()
                found += self._stamped(part, probe.number, 1)
        elapsed, used = found - calls * len(parts) * self._stamps_after(probe.before, probe.number)
        return float(elapsed), float(used)

    def _stamps_after(self, before: Callable[[], object], phase: int) -> F64:
        """(2,) what `_stamped` finds for no call at all: clocks, too, have left the caches."""
        if before not in self._empty:
            found = []
            for _ in range(EMPTY):
                before()
                found.append(self._stamped(lambda: None, phase, 1))
            self._empty[before] = np.median(found, axis=0)
        return self._empty[before]

    def _stamped(self, call: Callable[[], object], phase: int, calls: int) -> tuple[float, float]:
        """As `_timed`, for consecutive calls; without the time of reading the clocks."""
        tracer = self._tracer
        before = tracer.now()
        tracer.begin(phase)
        used = self._clock_ns()
        for _ in itertools.repeat(None, calls):
            call()
        used = self._clock_ns() - used
        tracer.end(phase)
        elapsed = (tracer.now() - before) / tracer.ticks_per_second
        return elapsed - 2 * self._glance, used * 1e-9 - self._glance


def _name(probe: Probe) -> tuple[str, ...]:
    return probe.phase, probe.storage, str(probe.units)


T = TypeVar("T")


def survey(
    comm: Comm,
    job: CharacterizeJob | NodesJob,
    measure: Callable[[HostFacts, Tell], T],
    tell: Tell,
    synthetic: str,
    dilate: float = 1.0,
    device: RankDevice | None = None,
) -> tuple[list[T], Environment] | None:
    """([rank] what it found, the environment) on rank 0, None elsewhere. Collective.

    `measure` gets this rank's host, and a `tell` that is silent on ranks other than 0.
    `synthetic` and `dilate` say how ranks are slowed on purpose; `device`: what it
    computes on.
    """
    facts = host_facts()
    taken = taken_meter()
    others = others_meter(comm)
    mine = measure(facts, tell if comm.rank == 0 else lambda text: None)
    doze(comm, 0.0)  # until all are done
    used, found = others(), comm.gather(mine)
    environment = describe(
        comm,
        facts,
        taken,
        used,
        launcher=job.launcher,
        command=job.command,
        synthetic=synthetic,
        dilate=dilate,
        device=device,
    )
    return None if found is None or environment is None else (found, environment)
