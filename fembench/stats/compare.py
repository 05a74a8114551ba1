"""Is one configuration faster than another?

Only if the interval of the ratio excludes 1 and the gain exceeds the A/A noise: the
difference found when a configuration is compared with itself in the same session.

The captured gain, (e - w) / (e - i), and its interval by Fieller's theorem.

E. C. Fieller, Some problems in interval estimation, J. Roy. Statist. Soc. B 16 (1954)
175-185. The interval contains every g for which Student's test does not reject a mean
of zero for (e - w) - g (e - i). If it does not reject a denominator of zero either, the
interval is unbounded: there is nothing to capture."""

import math
from typing import NamedTuple

import numpy as np

from fembench.base.arrays import F64, Mask
from fembench.stats.student import FEWEST, ratio_unpaired, student_factor
from fembench.stats.summary import LEVEL, Interval, Samples, median, median_interval

FEWEST_NOISE = 2  # samples whose noise is known


class Comparison(NamedTuple):
    """Times of `a` over times of `b`."""

    ratio: float  # above 1: a takes longer
    interval: Interval | None  # None: too few samples, no spread (if unpaired), or a nan
    n: int
    noise: float  # |ratio - 1| of a comparison with itself; inf if unknown
    in_favour: int = 0  # pairs in which a took longer; 0 for unpaired samples

    @property
    def half_width(self) -> float:
        """Half the width of the interval, divided by the ratio; inf without an interval.

        Measuring until this is small enough, whatever the ratio, keeps the rate of
        false alarms (docs/statistics.md); stopping at the first verdict does not.
        """
        return (self.interval.high - self.interval.low) / 2 / self.ratio if self.interval else math.inf

    @property
    def verdict(self) -> str:
        """'slower', 'faster' (a against b), 'no difference shown' or 'too few samples'."""
        if self.interval is None:
            return "too few samples"
        if 1.0 in self.interval or not abs(self.ratio - 1) > self.noise:
            return "no difference shown"
        return "slower" if self.ratio > 1 else "faster"


def compare_paired(a: Samples, b: Samples, *, noise: float = math.inf, level: float = LEVEL) -> Comparison:
    """Compare times that were measured in turns: a[i] just before or after b[i].

    The ratio is the median of a[i] / b[i]; its interval comes from order statistics. A
    disturbance that hits both members of a pair cancels. The only assumptions are that
    pairs are independent of each other and that, in the median, the order within a pair
    favours neither. Reverse the order in every second pair; otherwise a host that slows
    down steadily favours whichever runs first. There is no interval for fewer than six
    pairs or if a sample is nan. Without `noise`, nothing is called faster. With a noise
    of 0 and identical ratios, a difference in the last digit of the clock counts.
    Raises ValueError if the numbers of samples differ or if a sample is not positive.
    """
    if len(a) != len(b):
        raise ValueError(f"paired samples differ in number: {len(a)} and {len(b)}")
    ratio = median_ratio(a, b)
    ratios = np.asarray(a, dtype=float) / np.asarray(b, dtype=float)
    in_favour = int((ratios > 1).sum())
    return Comparison(ratio, median_interval(ratios, level), len(ratios), noise, in_favour)


def compare_unpaired(a: Samples, b: Samples, *, noise: float = math.inf) -> Comparison:
    """Compare times that were not measured in turns: ratio of medians, Welch's interval.

    Assumes independent, approximately lognormal samples, at least three of each
    (`ratio_unpaired`). Changes of the host over time count as noise here; if turns are
    possible, pairs need fewer samples.
    """
    ratio = ratio_unpaired(a, b)
    return Comparison(ratio.value, ratio.interval, min(len(a), len(b)), noise)


def noise_of_series(samples: Samples) -> float:
    """A/A noise within one series: |median ratio of neighbours - 1|; inf for too few.

    Neighbours are compared in pairs, like two configurations measured in turns. Raises
    ValueError if a sample is not positive.
    """
    x = np.asarray(samples, dtype=float)
    half = len(x) // 2
    return abs(median_ratio(x[: 2 * half : 2], x[1 : 2 * half : 2]) - 1) if half else math.inf


def median_ratio(a: Samples, b: Samples) -> float:
    """The median of a[i] / b[i]; for an even number, the geometric mean of the middle two.

    The ratio of b to a is thus the inverse of that of a to b. The arithmetic mean of
    1/2 and 2 is above 1 and would favour b. The result is nan if a sample is nan.
    Raises ValueError if one is not positive.
    """
    x, y = _positive(a), _positive(b)
    return math.exp(median(np.log(x / y))) if len(x) else math.nan


def _positive(samples: Samples) -> F64:
    """The samples as an array. Raises ValueError unless all are positive."""
    x = np.asarray(samples, dtype=float)
    if np.any(x <= 0):
        raise ValueError(f"sample {x[x <= 0][0]:g}; expected times above zero")
    return x


class Moments(NamedTuple):
    """Means of e - w and e - i, and the variances and covariance of these means."""

    saved: F64
    room: F64
    var_saved: F64
    var_room: F64
    cov: F64
    df: int


def moments(equal: F64, weighted: F64, ideal: F64) -> Moments:
    """The moments along the last axis of three series of samples.

    `equal` and `weighted` of the same length count as pairs; otherwise as independent
    series. `ideal` is independent of both, and exact if it is a single number. The
    degrees of freedom are those of the shortest series, which is conservative.
    """
    e, w, i = equal, weighted, ideal
    n = e.shape[-1]
    v_i = i.var(axis=-1, ddof=1) / i.shape[-1] if i.shape[-1] > 1 else np.zeros(i.shape[:-1])
    saved = e.mean(axis=-1) - w.mean(axis=-1)
    room = e.mean(axis=-1) - i.mean(axis=-1)
    v_e = e.var(axis=-1, ddof=1) / n
    lengths = [s.shape[-1] for s in (e, w, i) if s.shape[-1] > 1]
    if w.shape[-1] == n:
        d = e - w
        cov = ((d - d.mean(axis=-1, keepdims=True)) * e).sum(axis=-1) / (n - 1) / n
        return Moments(saved, room, d.var(axis=-1, ddof=1) / n, v_e + v_i, cov, min(lengths) - 1)
    v_w = w.var(axis=-1, ddof=1) / w.shape[-1]
    return Moments(saved, room, v_e + v_w, v_e + v_i, v_e, min(lengths) - 1)


def fieller(m: Moments) -> tuple[F64, F64, Mask]:
    """(low, high, bounded) of the ratio saved / room; no ends if not bounded."""
    t2 = student_factor(m.df) ** 2
    a = m.room**2 - t2 * m.var_room
    b = m.saved * m.room - t2 * m.cov
    c = m.saved**2 - t2 * m.var_saved
    bounded = (a > 0) & (m.room > 0)
    root = np.sqrt(np.maximum(b * b - a * c, 0.0))
    safe = np.where(bounded, a, 1.0)
    return (b - root) / safe, (b + root) / safe, bounded


def enough(equal: F64, weighted: F64, ideal: F64) -> bool:
    """Whether there are samples for an interval: three of each; the ideal may be one."""
    return min(len(equal), len(weighted)) >= FEWEST and (len(ideal) == 1 or len(ideal) >= FEWEST)
