"""The cost of reading each clock, measured as in Ferreira (2006), Tables 5.2 and 5.3.

Each timer is called 100 times, each call between two readings of the processor's counter. The table shows the
best, worst and mean difference. The cost of the counter's own reading is not subtracted; the row `rdtsc`
shows it. Rows `C` call the timers from C, as Ferreira did; rows `Python` call them from Python.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.timing import clocks
from fembench.timing.tracer import PYTHON_CLOCKS, compiled, make_tracer

CALLS = 100  # as in Ferreira (2006)


class TimerCost(NamedTuple):
    """The cost of one call of a timer, in ticks of the reference clock."""

    timer: str
    language: str  # "C" or "Python": where the call is made
    best: float
    worst: float
    mean: float
    median: float


class Experiment(NamedTuple):
    """All timers, measured with one reference clock."""

    reference: str  # the clock that timed the timers
    ticks_per_second: float
    calls: int
    timers: tuple[TimerCost, ...]

    def nanoseconds(self, ticks: float) -> float:
        return ticks / self.ticks_per_second * 1e9


# Ferreira (2006), Table 5.2, cycles: timer -> (best, worst, mean) on Athlon MP 1900+ 1.7 GHz, Pentium II
# 350 MHz, Celeron 2.4 GHz.
PUBLISHED_MACHINES = ("Athlon MP 1.7 GHz", "Pentium II 350 MHz", "Celeron 2.4 GHz")
PUBLISHED_CYCLES: dict[str, tuple[tuple[float, float, float], ...]] = {
    "rdtsc instruction": ((11, 26, 12), (34, 74, 37), (84, 240, 87)),
    "rdtscll()": ((32, 356, 94.4), (88, 176, 97), (180, 768, 216)),
    "gettimeofday()": ((399, 9063, 513), (519, 4031, 556), (3164, 3884, 3392)),
    "MPI_Wtime()": ((1167, 18446, 1293), (1410, 45728, 1440), (7992, 34100, 8289)),
}
# Ferreira (2006), Table 5.3, the mean in ms. Its cells for rdtsc (machines 1, 3) and rdtscll (machine 3) do
# not follow from Table 5.2 and the clock rates.
PUBLISHED_MEAN_MS: dict[str, tuple[float, ...]] = {
    "rdtsc instruction": (0.00000882, 0.00010571, 0.00003708),
    "rdtscll()": (0.00005552, 0.00027714, 0.00009125),
    "gettimeofday()": (0.00030217, 0.00158965, 0.00141333),
    "MPI_Wtime()": (0.00076058, 0.00411428, 0.00345375),
}
# published timer -> our timer that is called in the same way
COUNTERPART = {
    "rdtsc instruction": "rdtsc",
    "rdtscll()": "rdtscp",
    "gettimeofday()": "gettimeofday",
    "MPI_Wtime()": "MPI_Wtime",
}

# Timers in C: name in tables -> name in the compiled module
_IN_C = {
    "rdtsc": "rdtsc",
    "rdtscp": "tsc",
    "gettimeofday": "gettimeofday",
    "MPI_Wtime": "MPI_Wtime",
    "clock_gettime(MONOTONIC)": "perf_counter_ns",
    "clock_gettime(MONOTONIC_RAW)": "monotonic_raw",
    "clock_gettime(THREAD_CPUTIME_ID)": "thread_time_ns",
}


def run_experiment(
    calls: int = CALLS, wtime: Callable[[], float] | None = None, wtime_address: int = 0
) -> Experiment:
    """Time `calls` calls of every available timer.

    `wtime` is MPI's clock as a Python function, `wtime_address` the address of its C function; without them,
    their rows are left out. Without the compiled module, `perf_counter_ns` is the reference.
    """
    if not clocks.has_tsc():
        rows = [
            _cost(name, "Python", _calls_by_system_clock(call, calls)) for name, call in _python_timers(wtime)
        ]
        return Experiment("perf_counter_ns", 1e9, calls, tuple(rows))
    rate = clocks.calibrate(0.05).ticks_per_second
    rows = [
        _cost(name, "C", compiled.costs_in_c(timer, calls, wtime_address))
        for name, timer in _IN_C.items()
        if timer != "MPI_Wtime" or wtime_address
    ]
    rows += [
        _cost(name, "Python", compiled.costs_of_calls(call, calls)) for name, call in _python_timers(wtime)
    ]
    rows.append(
        _cost("a recorded span (begin and end)", "Python", compiled.costs_of_calls(_span(rate), calls))
    )
    return Experiment("tsc", rate, calls, tuple(rows))


def _python_timers(wtime: Callable[[], float] | None) -> list[tuple[str, Callable[[], object]]]:
    timers: list[tuple[str, Callable[[], object]]] = []
    if clocks.has_tsc():
        timers.append(("tsc", compiled.read_tsc))
    timers.append(("perf_counter_ns", time.perf_counter_ns))
    if wtime is not None:
        timers.append(("MPI.Wtime", wtime))
    return timers + [(name, PYTHON_CLOCKS[name]()) for name in ("time_ns", "monotonic_raw", "thread_time_ns")]


def _span(ticks_per_second: float) -> Callable[[], None]:
    """A call that records one span."""
    tracer = make_tracer("tsc", 1_000_000, ticks_per_second)
    tracer.recording = True
    begin, end = tracer.begin, tracer.end

    def span() -> None:
        begin(0)
        end(0)

    return span


def _calls_by_system_clock(call: Callable[[], object], n: int) -> npt.NDArray[np.int64]:
    """(n,) nanoseconds between two readings of `perf_counter_ns` around each `call()`."""
    read = time.perf_counter_ns
    out = [0] * n
    for i in range(n):
        before = read()
        call()
        out[i] = read() - before
    return np.array(out, dtype=np.int64)


def _cost(timer: str, language: str, ticks: npt.NDArray[np.int64]) -> TimerCost:
    statistics = (ticks.min(), ticks.max(), ticks.mean(), np.median(ticks))
    return TimerCost(timer, language, *(float(s) for s in statistics))
