"""How time falls with processors: speedup, efficiency, two laws, bounds.

    T   time                     S   speedup          E   efficiency = S / P
    f   sequential fraction of the one-processor time (Amdahl)
    g   sequential fraction of the parallel run's time (Gustafson)
    P   processors

Equation numbers are those of Ferreira (2006).

How well unequal ranks are used: efficiency relative to their summed speed, captured
gain, imbalance.

    W     work, in any unit (cells, flops)      s_p   speed of rank p, work per second
    T     time of the run, seconds              T_ideal = W / sum(s_p)

The speeds must come from timings that were not used to choose the partition under test."""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.stats.compare import enough, fieller, moments
from fembench.stats.summary import LEVEL, Interval, Samples, fewest_for


class CapturedGain(NamedTuple):
    """(T_equal - T_weighted) / (T_equal - T_ideal): 1 is the whole possible gain."""

    value: float  # nan if there is nothing to capture
    interval: Interval | None  # None: too few samples, or nothing to capture
    room: float  # (T_equal - T_ideal) / T_equal

    @property
    def nothing_to_capture(self) -> bool:
        """Whether the samples do not show the equal run to be slower than the ideal one."""
        return bool(np.isnan(self.value))


def ideal_seconds(work: float, speeds: npt.ArrayLike) -> float:
    """T_ideal: the time if all ranks compute from beginning to end and none waits."""
    s = np.asarray(speeds, float)
    if not s.size or not np.all(np.isfinite(s) & (s > 0)):
        raise InputError(f"speeds {s.tolist()}; expected positive numbers, one per rank")
    return float(work / s.sum())


def heterogeneous_efficiency(work: float, speeds: npt.ArrayLike, seconds: float) -> float:
    """E_het = (W / sum(s_p)) / T. Equals T1 / (P Tp) if all speeds are equal."""
    return ideal_seconds(work, speeds) / seconds


def imbalance(busy: npt.ArrayLike) -> F64:
    """max / mean - 1 over the ranks of `busy` (P,) or (P, n_phases); 0 for an empty phase."""
    t = np.asarray(busy, float)
    mean = t.mean(axis=0)
    return np.asarray(np.divide(t.max(axis=0), mean, out=np.ones_like(mean), where=mean > 0) - 1)


def captured_gain(equal: Samples, weighted: Samples, ideal: float | Samples) -> CapturedGain:
    """Captured gain of mean times, with Fieller's interval; `ideal`: one or several.

    If there are as many equal as weighted runs, they count as pairs measured in turns.
    Pairs (or runs) are assumed independent and approximately normal. The interval is
    None for fewer than three, or if no series has any spread (the clock did not
    resolve it). If six or more do not show that equal runs are slower than the ideal,
    there is nothing to capture.
    """
    e, w, i = (np.atleast_1d(np.asarray(v, float)) for v in (equal, weighted, ideal))
    if not (len(e) and len(w) and len(i)):
        raise InputError("captured gain: no samples; expected at least one time of each kind of run")
    te, tw, ti = (float(v.mean()) for v in (e, w, i))
    room = (te - ti) / te
    if not enough(e, w, i) or max(np.ptp(v) for v in (e, w, i)) == 0:
        return CapturedGain((te - tw) / (te - ti) if room > 0 else np.nan, None, room)
    low, high, bounded = fieller(moments(e, w, i))
    few = min(len(e), len(w)) < fewest_for()
    if not bounded and not (few and room > 0):
        return CapturedGain(np.nan, None, room)
    interval = Interval(float(low), float(high), LEVEL) if bounded else None
    return CapturedGain((te - tw) / (te - ti), interval, room)


FEWEST = 3  # different numbers of processors needed to fit a law, including one processor
Values = npt.ArrayLike
Number = TypeVar("Number", float, F64)


class ScalingFit(NamedTuple):
    """A law of one parameter, fitted by least squares."""

    fraction: float  # f or g; meaningless if `fails`
    worst: float  # largest |predicted / measured - 1| of the speedups
    fails: str = ""  # why the law does not apply, or ""


class Bounds(NamedTuple):
    """Upper bounds on a speedup (Culler and Singh), each with the losses of the last."""

    work: float  # (3.7)
    waiting: float  # (3.8): with waiting and communication
    extra: float  # (3.9): with extra work that a single processor would not do


def against_each(alone: Mapping[str, float], run: float, tasks: int) -> dict[str, tuple[float, float]]:
    """(S, S / tasks) relative to a task on each host alone (Ferreira 2006, 5.4.6)."""
    return {host: (time / run, time / run / tasks) for host, time in alone.items()}


def amdahl(f: float, processors: Number) -> Number:
    """S = 1 / (f + (1 - f) / P) (3.3)."""
    return 1 / (f + (1 - f) / processors)


def gustafson(g: float, processors: Number) -> Number:
    """S = g + (1 - g) P (3.4)."""
    return g + (1 - g) * processors


def amdahl_fraction(g: float, processors: float) -> float:
    """The f with which Amdahl's law gives Gustafson's speedup with g (3.5, corrected)."""
    return g / (g + (1 - g) * processors)


def fit_amdahl(processors: Values, speedups: Values) -> ScalingFit:
    """f by least squares in 1 / S = 1/P + f (1 - 1/P), from speedups at a fixed size.

    Raises InputError for fewer than three different P, P = 1 included.
    """
    p, s = _points(processors, speedups)
    x, y = 1 - 1 / p, 1 / s - 1 / p
    f = float(x @ y / (x @ x))
    return ScalingFit(f, float(np.abs(amdahl(f, p) / s - 1).max()), _fails(f, s))


def fit_gustafson(processors: Values, speedups: Values) -> ScalingFit:
    """g by least squares in P - S = g (P - 1), from speedups at sizes that grow with P.

    Raises InputError as `fit_amdahl` does.
    """
    p, s = _points(processors, speedups)
    x, y = p - 1, p - s
    g = float(x @ y / (x @ x))
    return ScalingFit(g, float(np.abs(gustafson(g, p) / s - 1).max()), _fails(g, s))


def _fails(fraction: float, speedups: F64) -> str:
    """Why `fraction` is not a fraction of a time, or ""; rounding errors are allowed."""
    if speedups.min() < 1 or fraction > 1:
        return "slower on more ranks"
    return "super-linear" if fraction < -1e-9 else ""


def _points(processors: Values, speedups: Values) -> tuple[F64, F64]:
    p = np.asarray(processors, float)
    s = np.asarray(speedups, float)
    if p.shape != s.shape or p.ndim != 1:
        raise InputError(f"{p.size} numbers of processors, {s.size} speedups; expected as many of each")
    if not (np.all(p >= 1) and np.any(p > 1) and np.all(s > 0)):
        raise InputError("speedups; expected positive numbers, at least one on more than one processor")
    if len({1.0, *p.tolist()}) < FEWEST:
        raise InputError(
            f"speedups on {sorted({1.0, *p.tolist()})} processors; expected {FEWEST} different numbers"
        )
    return p, s


def speedup_bounds(
    sequential: float, work: Values, waiting: Values = 0.0, communication: Values = 0.0, extra: Values = 0.0
) -> Bounds:
    """Bounds on the speedup from times (P,) of the processors, as `sequential`."""
    busy = np.atleast_1d(np.asarray(work, float))
    held = busy + np.asarray(waiting, float) + np.asarray(communication, float)
    everything = held + np.asarray(extra, float)
    return Bounds(*(sequential / float(np.max(total)) for total in (busy, held, everything)))
