"""Intervals from few positive samples: Student's t on their logarithms.

Times and their ratios scatter by factors, so their logarithms are closer to a normal distribution. An
interval needs three samples: with two, Student's factor is 12.7, and two samples that happen to agree look
certain. Identical samples have no interval, because the clock did not resolve their spread. See
docs/statistics.md for the simulated coverage of each interval, also where its assumptions do not hold.
"""

import functools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.stats.summary import LEVEL, Interval, Samples, median, median_interval

FEWEST = 3  # samples of a Student interval
Array = npt.NDArray[np.float64]


class Ratio(NamedTuple):
    """The ratio of two typical times, a over b."""

    value: float
    interval: Interval | None  # None: too few samples on one side, or no spread on either


def typical_interval(samples: Samples, level: float = LEVEL) -> Interval | None:
    """The interval of the median of independent samples, None of fewer than three.

    From six samples on: order statistics, which assume nothing of the distribution and cover at least
    `level`. Three to five: Student on logarithms, which assumes positive samples, near to lognormal; None
    where one is not positive, and where all are identical. None where one is nan. For runs, and for ratios
    within pairs: what is independent of each other.
    """
    ordered = median_interval(samples, level)
    student = None if ordered else log_interval(samples, level)
    if student is None:
        return ordered
    middle = median(samples)  # within, but for rounding
    return student._replace(low=min(student.low, middle), high=max(student.high, middle))


def log_interval(samples: Samples, level: float = LEVEL) -> Interval | None:
    """Student's interval of the geometric mean, on logarithms; None of fewer than three samples.

    Assumes independent positive samples, near to lognormal (the geometric mean is their median then); None
    where one is not positive or is nan, and where all are identical.
    """
    x = np.asarray(samples, dtype=float)
    if not _spread(x):
        return None
    low, high = log_ends(x, level)
    return Interval(float(low), float(high), level)


def next_interval(samples: Samples, level: float = LEVEL) -> Interval | None:
    """Where one more sample will be: Student's prediction interval, on logarithms; None of fewer than three.

    Assumes independent positive samples, near to lognormal, and one more of the same kind. None as of
    `log_interval`.
    """
    x = np.asarray(samples, dtype=float)
    if not _spread(x):
        return None
    low, high = next_ends(x, level)
    return Interval(float(low), float(high), level)


def _enough(x: Array) -> bool:
    """Whether Student's interval can be had: three samples or more, all positive numbers."""
    return len(x) >= FEWEST and bool(np.all(np.isfinite(x) & (x > 0)))


def _spread(x: Array) -> bool:
    """`_enough` samples whose logarithms are not all identical."""
    return _enough(x) and float(np.ptp(np.log(x))) > 0


def next_ends(x: Array, level: float = LEVEL) -> tuple[Array, Array]:
    """(low, high) of `next_interval`, along the last axis of positive x (..., n)."""
    logs = np.log(x)
    n = logs.shape[-1]
    half = student_factor(n - 1, level) * logs.std(axis=-1, ddof=1) * math.sqrt(1 + 1 / n)
    return np.exp(logs.mean(axis=-1) - half), np.exp(logs.mean(axis=-1) + half)


def log_ends(x: Array, level: float = LEVEL) -> tuple[Array, Array]:
    """(low, high) of `log_interval`, along the last axis of positive x (..., n), n >= 2."""
    logs = np.log(x)
    n = logs.shape[-1]
    half = student_factor(n - 1, level) * logs.std(axis=-1, ddof=1) / math.sqrt(n)
    return np.exp(logs.mean(axis=-1) - half), np.exp(logs.mean(axis=-1) + half)


def ratio_unpaired(a: Samples, b: Samples, level: float = LEVEL) -> Ratio:
    """Ratio of medians of samples that were not measured in turns; Welch's interval, on logarithms.

    Assumes samples independent within and between a and b, positive and near to lognormal, whatever the two
    spreads. No interval where a or b has fewer than three, where one is not positive or is nan, and where the
    samples of a are identical and those of b as well. Give one sample for each run (its median):
    sets of one run are not independent of each other.
    """
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    value = median(x) / median(y) if len(x) and len(y) and median(y) else math.nan
    if not (_enough(x) and _enough(y) and (_spread(x) or _spread(y))):
        return Ratio(value, None)
    low, high = welch_ends(x, y, level)
    return Ratio(value, Interval(min(float(low), value), max(float(high), value), level))


def welch_ends(a: Array, b: Array, level: float = LEVEL) -> tuple[Array, Array]:
    """(low, high) of the ratio of geometric means, along the last axes of a (..., n) and b (..., m).

    Welch's degrees of freedom, but no more than two equal series of the shorter length would have: where one
    is much shorter, its spread is known too badly for what the formula then gives.
    """
    x, y = np.log(a), np.log(b)
    u, v = (z.var(axis=-1, ddof=1) / z.shape[-1] for z in (x, y))
    parts = u**2 / (x.shape[-1] - 1) + v**2 / (y.shape[-1] - 1)
    fewest = min(x.shape[-1], y.shape[-1]) - 1.0
    df = np.divide((u + v) ** 2, parts, out=np.full_like(parts, fewest), where=parts > 0)
    half = student_factors(np.minimum(df, 2 * fewest), level) * np.sqrt(u + v)
    middle = x.mean(axis=-1) - y.mean(axis=-1)
    return np.exp(middle - half), np.exp(middle + half)


def share_intervals(shares: npt.ArrayLike, level: float = LEVEL) -> tuple[Interval | None, ...]:
    """(P,) intervals of the shares of ranks from (n, P) shares, each row measured on all ranks at once.

    `typical_interval` of each column: the rows are independent of each other, a rank's share in them near to
    lognormal where there are fewer than six. None of fewer than three rows.
    """
    return tuple(typical_interval(column, level) for column in np.asarray(shares, dtype=float).T)


@functools.lru_cache(maxsize=256)
def student_factor(df: int, level: float = LEVEL) -> float:
    """Half the width of an interval of `level`, in standard errors, at df degrees of freedom."""
    return float(student_factors(np.float64(df), level))


def student_factors(df: npt.ArrayLike, level: float = LEVEL) -> Array:
    """The same for many degrees of freedom, whole or not."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(df, (1 + level) / 2))
