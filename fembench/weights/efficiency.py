"""How well unequal ranks are used: efficiency relative to their summed speed, captured gain, imbalance.

    W     work, in any unit (cells, flops)      s_p   speed of rank p, work per second
    T     time of the run, seconds              T_ideal = W / sum(s_p)

The speeds must come from timings that were not used to choose the partition under test.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.base.errors import InputError
from fembench.stats.gain import enough, fieller, moments
from fembench.stats.summary import LEVEL, Interval, Samples, fewest_for

Array = npt.NDArray[np.float64]


class CapturedGain(NamedTuple):
    """(T_equal - T_weighted) / (T_equal - T_ideal): 1 is the whole possible gain, 0 none of it."""

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


def imbalance(busy: npt.ArrayLike) -> Array:
    """max / mean - 1 over the ranks, the first axis of `busy` (P,) or (P, n_phases); 0 for an empty phase."""
    t = np.asarray(busy, float)
    mean = t.mean(axis=0)
    return np.asarray(np.divide(t.max(axis=0), mean, out=np.ones_like(mean), where=mean > 0) - 1)


def captured_gain(
    equal: Samples, weighted: Samples, ideal: float | Samples, *, level: float = LEVEL
) -> CapturedGain:
    """Captured gain of mean times, with Fieller's interval; `ideal` is one number or a series of samples.

    If there are as many equal as weighted runs, they count as pairs measured in turns. Pairs (or runs) are
    assumed independent and approximately normal. The interval is None for fewer than three, or if no series
    has any spread (the clock did not resolve it). If six or more do not show that equal runs are slower than
    the ideal, there is nothing to capture.
    """
    e, w, i = (np.atleast_1d(np.asarray(v, float)) for v in (equal, weighted, ideal))
    if not (len(e) and len(w) and len(i)):
        raise InputError("captured gain: no samples; expected at least one time of each kind of run")
    te, tw, ti = (float(v.mean()) for v in (e, w, i))
    room = (te - ti) / te
    if not enough(e, w, i) or max(np.ptp(v) for v in (e, w, i)) == 0:
        return CapturedGain((te - tw) / (te - ti) if room > 0 else np.nan, None, room)
    low, high, bounded = fieller(moments(e, w, i), level)
    few = min(len(e), len(w)) < fewest_for(level)
    if not bounded and not (few and room > 0):
        return CapturedGain(np.nan, None, room)
    return CapturedGain(
        (te - tw) / (te - ti), Interval(float(low), float(high), level) if bounded else None, room
    )
