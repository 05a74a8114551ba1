"""What the ranks of benchmarks/truth.py run: one case as two, set by set in turns, all in one job.

    mpiexec -n RANKS python benchmarks/truth_turns.py FOLDER

Both do the same work on the same mesh; the first may be slowed down, by a factor on the time that each phase
takes at that moment. The order is reversed in every second turn. Both use the same tracer, at the same cost.
"""

import sys
import time
from collections.abc import Iterator
from statistics import median

import msgspec
import numpy as np

from fembench.bench.measure import Timed, start_plain
from fembench.bench.prepare import prepare
from fembench.launch.job import RankProgram
from fembench.launch.serve import serve
from fembench.ranks.comm import Comm
from fembench.records.case import Case
from fembench.records.phases import ASSEMBLY, CG
from fembench.stats.compare import compare_paired, median_ratio
from fembench.synthetic.slowness import COMPUTE, TASK, EmulatedSlowness
from fembench.synthetic.waits import HeardTracer
from fembench.timing.tracer import TracerLike, make_tracer

RUNS, LEVEL = 14, 0.99  # number of runs that the turns are divided into; level of the verdicts


class Pairs(msgspec.Struct, frozen=True):
    """The job: a case twice, the first computing for `slower` times as long, until their ratio is known."""

    case: Case
    slower: float
    within: float  # half the width of the ratio's interval at which to stop
    least: int  # turns
    seconds: float  # after which the job ends in any case
    warmups: int = 6  # turns before those that count


class SlownessOfNow(EmulatedSlowness):
    """Phases last `factor` times what they take this time, noise included.

    A slowdown by a few per cent of the least time would vanish whenever the core is slower than at its best.
    """

    def tracer(self, tracer: TracerLike, /) -> TracerLike:
        return HeardTracer(tracer, self.begin, self.end, self.follow)

    def rehearsals(self, *_: object, **__: object) -> Iterator[int]:
        """None: nothing is learned."""
        return iter(())

    def end(self, phase: int = TASK, /) -> None:
        if phase in COMPUTE:
            used = time.thread_time_ns() - self._used
            self._wait_until(time.perf_counter_ns() + round(used * (self.factor - 1)))


class Took(msgspec.Struct):
    """Seconds of assembly and CG on the slowest rank, one entry per turn."""

    first: list[float]
    second: list[float]


def run(comm: Comm, job: Pairs) -> Took | None:
    """All turns; on rank 0. Collective."""
    tracer, slowness = make_tracer(), SlownessOfNow(1.0)
    timed = start_plain(comm, job.case, prepare(comm, job.case, tracer), tracer)
    took = Took([], [])
    contestants = [(took.first, job.slower), (took.second, 1.0)]
    begin, turn = time.monotonic(), 0
    while turn < job.warmups or not comm.bcast(enough(job, took, time.monotonic() - begin)):
        for kept, factor in contestants[:: -1 if turn % 2 else 1]:
            slowness.factor = factor
            seconds = _set_seconds(comm, timed, tracer, slowness)
            kept += [seconds] if turn >= job.warmups else []
        turn += 1
    return took if comm.rank == 0 else None


def enough(job: Pairs, took: Took, seconds: float) -> bool:
    """Whether the ratio is known well enough, whatever it is; looked at every `least` turns."""
    n = len(took.first)
    if n < job.least or n % job.least:
        return False
    return seconds > job.seconds or compare_paired(*in_runs(took), level=LEVEL).half_width <= job.within


def in_runs(took: Took) -> tuple[list[float], list[float]]:
    """(first, second): typical seconds of each run.

    The ratio of a run is the median of the ratios of its turns: where the core changes its speed in the
    middle of a run, each of two medians may fall on another speed.
    """
    first, second = [], []
    for a, b in zip(np.array_split(took.first, RUNS), np.array_split(took.second, RUNS)):
        second.append(median(b))
        first.append(median_ratio(a, b) * second[-1])
    return first, second


def _set_seconds(comm: Comm, timed: Timed, tracer: TracerLike, slowness: EmulatedSlowness) -> float:
    ticks = timed(tracer, slowness).sets[-1].ticks
    return max(comm.allgather(int(ticks[ASSEMBLY] + ticks[CG]))) / tracer.ticks_per_second


if __name__ == "__main__":
    turns = RankProgram(
        Pairs,
        lambda job: job.case.placement.ranks,
        lambda comm, job, tell: run(comm, job),
    )
    sys.exit(serve(turns, sys.argv[1]))
