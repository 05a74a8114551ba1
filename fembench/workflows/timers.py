"""What one reading of each clock costs on this machine, as in Ferreira (2006), Section 5.2.

Each timer is called 100 times, each call between two readings of the processor's
counter. The table shows the best, worst and mean difference. The cost of the counter's
own reading is not subtracted; the row `rdtsc` shows it. Rows `C` call the timers from
C, as Ferreira did; rows `Python` call them from Python.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from fembench.base.arrays import I64
from fembench.base.tables import table
from fembench.records.record import ClockCertificate
from fembench.timing import clocks
from fembench.timing.certificate import certify
from fembench.timing.tracer import compiled, make_tracer

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

    `wtime` is MPI's clock as a Python function, `wtime_address` the address of its C
    function; without them, their rows are left out. Without the compiled module,
    `perf_counter_ns` is the reference.
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
    timers += [("time_ns", time.time_ns), ("monotonic_raw", clocks.monotonic_raw)]
    return [*timers, ("thread_time_ns", time.thread_time_ns)]


def _span(ticks_per_second: float) -> Callable[[], None]:
    """A call that records one span."""
    tracer = make_tracer("tsc", 1_000_000, ticks_per_second)
    tracer.recording = True
    begin, end = tracer.begin, tracer.end

    def span() -> None:
        begin(0)
        end(0)

    return span


def _calls_by_system_clock(call: Callable[[], object], n: int) -> I64:
    """(n,) nanoseconds between two readings of `perf_counter_ns` around each `call()`."""
    read = time.perf_counter_ns
    out = [0] * n
    for i in range(n):
        before = read()
        call()
        out[i] = read() - before
    return np.array(out, dtype=np.int64)


def _cost(timer: str, language: str, ticks: I64) -> TimerCost:
    statistics = (ticks.min(), ticks.max(), ticks.mean(), np.median(ticks))
    return TimerCost(timer, language, *(float(s) for s in statistics))


def as_tree(experiment: Experiment, certificate: ClockCertificate) -> dict[str, Any]:
    """The experiment and its certificate, for JSON output."""
    timers = [
        {
            **t._asdict(),
            **{f"{k}_ns": experiment.nanoseconds(getattr(t, k)) for k in ("best", "worst", "mean", "median")},
        }
        for t in experiment.timers
    ]
    return {
        "reference": experiment.reference,
        "ticks_per_second": experiment.ticks_per_second,
        "calls": experiment.calls,
        "timers": timers,
        "certificate": msgspec.to_builtins(certificate),
    }


def as_text(experiment: Experiment, certificate: ClockCertificate, note: str = "") -> str:
    """Tables for a terminal or a Markdown page."""
    unit = "ticks of the TSC" if experiment.reference == "tsc" else "nanoseconds of perf_counter_ns"
    head = (
        f"{experiment.calls} calls of each timer, in {unit} at {experiment.ticks_per_second / 1e6:.3f} MHz;"
        " the cost of the reference's own reading is in every row."
    )
    verdict = "certified" if certificate.certified else "not certified"
    clock = (
        f"clock of a run: {certificate.name} ({verdict}: {certificate.reason};"
        f" drift {certificate.drift:.1e}); quantum {certificate.quantum_ns:.3g} ns,"
        f" a reading {certificate.read_ns:.3g} ns, a recorded span {certificate.span_ns:.3g} ns"
    )
    parts = [head, _ours(experiment), *([note] if note else []), clock]
    return "\n\n".join(parts)


def _ours(experiment: Experiment) -> str:
    rows = []
    for timer in experiment.timers:
        ticks = (timer.best, timer.worst, timer.mean)
        rows.append(
            [timer.timer, timer.language, *map(_short, (*ticks, *map(experiment.nanoseconds, ticks)))]
        )
    heads = ["timer", "called from", "best", "worst", "mean", "best ns", "worst ns", "mean ns"]
    return table(heads, rows, align="llrrrrrr")


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


__all__ = ["as_text", "as_tree", "timed"]


def timed(calls: int = CALLS) -> tuple[Experiment, ClockCertificate, str]:
    """(each timer; the certificate of a run's clock; why MPI_Wtime is missing, if it is)."""
    try:
        from fembench.ranks import comm

        experiment = run_experiment(calls, comm.MPI.Wtime, comm.address("MPI_Wtime"))
        note = ""
    except (ImportError, RuntimeError) as error:  # mpi4py without an MPI library raises RuntimeError
        experiment = run_experiment(calls)
        note = f"MPI_Wtime not measured, no MPI here: {str(error).splitlines()[0]}"
    return experiment, certify(), note
