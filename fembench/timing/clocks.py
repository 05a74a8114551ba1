"""The clocks of runs by name: how each is read, its rate, and the cost of one reading.

`tsc` is the processor's counter (x86-64 TSC, AArch64 CNTVCT): reference time, not core
cycles. Its rate is measured against CLOCK_MONOTONIC_RAW, which no time daemon adjusts.
"""

import itertools
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fembench.base.arrays import I64
from fembench.base.errors import InputError, closest
from fembench.timing.tracer import TracerLike, compiled, make_tracer

PAUSE = 0.01  # seconds between the two readings of a calibration
SPANS = 1000  # spans timed together to find the cost of one
BATCHES = 45  # together longer than a scheduler time slice of another process


class Clock(NamedTuple):
    """A way to read time."""

    name: str
    read: Callable[[], int]  # ticks
    ticks_per_second: float


class Rate(NamedTuple):
    """A calibration of the counter."""

    ticks_per_second: float
    uncertainty: float  # relative


class Pair(NamedTuple):
    """Simultaneous readings of the counter and CLOCK_MONOTONIC_RAW."""

    ticks: int
    raw_ns: int
    window_ns: int  # most time between the two readings


CLOCKS = ("tsc", "perf_counter_ns")


def has_tsc() -> bool:
    """Whether the counter can be read: by the compiled module, on this processor."""
    return compiled is not None and compiled.has_tsc()


def check_name(name: str) -> None:
    """Raises InputError unless the name is `auto` or a clock."""
    if name not in (*CLOCKS, "auto"):
        near = closest(name, CLOCKS)
        raise InputError(f"unknown clock '{name}'; the nearest known is '{near}' (or 'auto')")


def open_clock(name: str, *, ticks_per_second: float | None = None) -> Clock:
    """The named clock. Without `ticks_per_second`, calibrated now in 10 ms.

    Raises InputError for an unknown name, and for the counter if it cannot be read here.
    """
    check_name(name)
    if name == "tsc":
        rate = calibrate().ticks_per_second if ticks_per_second is None else ticks_per_second
        return Clock(name, compiled.read_tsc, rate)
    return Clock(name, time.perf_counter_ns, 1e9)


def monotonic_raw() -> int:
    """CLOCK_MONOTONIC_RAW in ns; where there is none, the system's monotonic clock."""
    identity = getattr(time, "CLOCK_MONOTONIC_RAW", None)
    return time.monotonic_ns() if identity is None else time.clock_gettime_ns(identity)


def pair() -> Pair:
    """The counter and CLOCK_MONOTONIC_RAW now."""
    return Pair(*compiled.paired_reading())


def rate_between(a: Pair, b: Pair) -> Rate:
    """Ticks per second of the counter from moment `a` to moment `b`."""
    span = b.raw_ns - a.raw_ns
    if span <= 0:
        raise ValueError(f"no time between two readings: {a}, {b}")
    return Rate((b.ticks - a.ticks) / span * 1e9, (a.window_ns + b.window_ns) / (2 * span))


def calibrate(pause: float = PAUSE) -> Rate:
    """Ticks per second of the counter, over `pause` seconds.
    Raises InputError without it."""
    if not has_tsc():
        raise InputError("no processor counter can be read here: the compiled module is not built")
    before = pair()
    time.sleep(pause)
    return rate_between(before, pair())


def differences(clock: Clock, n: int = 2000) -> I64:
    """(n,) ticks between consecutive readings, in a C loop if compiled, else from Python."""
    if compiled is not None and clock.name in compiled.CODES:
        return np.asarray(compiled.back_to_back(clock.name, n))
    read = clock.read
    return np.diff(np.array([read() for _ in range(n + 1)]))


def quantum_ns(clock: Clock) -> float:
    """The resolution of the clock: its smallest common step, or infinity if it never moved.

    A step is common if it makes up at least a tenth of all non-zero differences. Some
    processors add 1 to a counter that is read twice within a step.
    """
    return smallest_usual_step(differences(clock)) / clock.ticks_per_second * 1e9


def smallest_usual_step(ticks: I64) -> float:
    """The smallest number that is a tenth of the positive ones, else the smallest of them."""
    values, times = np.unique(ticks[ticks > 0], return_counts=True)
    if not len(values):
        return float("inf")
    usual = values[times >= 0.1 * times.sum()]
    return float(usual[0] if len(usual) else values[0])


def reading_ns(clock: Clock) -> float:
    """Cost of one reading inside a span: the least mean over batches."""
    return min(float(differences(clock, 500).mean()) for _ in range(9)) / clock.ticks_per_second * 1e9


def read_ns(clock: Clock) -> float:
    """Median cost of one reading from Python, the empty loop subtracted."""
    read = clock.read

    def work() -> None:
        for _ in itertools.repeat(None, SPANS):
            read()

    return _cost(work)


def span_ns(tracer: TracerLike) -> float:
    """Median cost of a recorded span from Python, less the empty loop. Resets the tracer."""
    begin, end = tracer.begin, tracer.end

    def work() -> None:
        for _ in itertools.repeat(None, SPANS):
            begin(0)
            end(0)

    recording, tracer.recording = tracer.recording, True
    cost = _cost(work, before=tracer.reset)
    tracer.recording = recording
    tracer.reset()
    return cost


def span_cost(name: str, ticks_per_second: float = 1e9) -> float:
    """`span_ns` of a new tracer on the named clock."""
    return span_ns(make_tracer(name, SPANS, ticks_per_second))


def _cost(work: Callable[[], None], before: Callable[[], None] = lambda: None) -> float:
    """Nanoseconds per step of `work`, which makes SPANS steps; median over batches."""
    batches = []
    for _ in range(BATCHES):
        before()
        begin = time.perf_counter_ns()
        work()
        middle = time.perf_counter_ns()
        for _ in itertools.repeat(None, SPANS):
            pass
        end = time.perf_counter_ns()
        batches.append((middle - begin) - (end - middle))
    return max(float(np.median(batches)), 0.0) / SPANS
