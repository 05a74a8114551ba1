"""Location, spread and drift of repeated measurements.

Nothing is assumed about the distribution: run times are skewed, with a floor and rare
large values. The ends of the interval of the median are two order statistics. The
number of samples below the true median is Binomial(n, 1/2), so the coverage is known
exactly (David & Nagaraja, Order Statistics, section 7.1). Fewer than six samples cannot
bound the median at 95 %: the interval is None.
"""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fembench.base.arrays import F64

Samples = Sequence[float] | F64
LEVEL = 0.95


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float
    level: float  # probability of coverage; for order statistics at least the requested one

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and self.low <= value <= self.high


def ends_of(interval: Interval | None) -> tuple[float, float]:
    """(low, high) of an interval; nan without one."""
    return interval[:2] if interval else (math.nan, math.nan)


def median(samples: Samples) -> float:
    """The middle value; nan if there are no samples, or if one is nan."""
    x = np.asarray(samples, dtype=float)
    return math.nan if not len(x) or np.isnan(x).any() else float(middle(x))


def middle(samples: F64) -> F64:
    """(…,) medians over the first axis of (n, …) without nan: as np.median, in a fifth of the time."""
    x = np.sort(samples, axis=0)
    return np.asarray((x[(len(x) - 1) // 2] + x[len(x) // 2]) / 2)


def median_interval(samples: Samples, level: float = LEVEL) -> Interval | None:
    """The interval of the median by order statistics; None for fewer than six (at 95 %).

    Assumes independent samples of one distribution, of whatever kind. Conservative: it
    covers with probability `level` or more (96.9 % for six samples, 99.2 % for eight),
    and its own `level` says which. Samples that depend on their neighbours, or that
    are grouped in runs, are not independent: see `runs.by_run`. None if a sample is
    nan, which cannot be ordered.
    """
    k, covered = order_statistics(len(samples), level)
    x = np.sort(np.asarray(samples, dtype=float))
    if k == 0 or np.isnan(x[-1]):  # nan is sorted to the end
        return None
    return Interval(float(x[k - 1]), float(x[len(x) - k]), covered)


def fewest_for(level: float = LEVEL) -> int:
    """Samples that an interval of the median needs: six at 95 %. Raises ValueError."""
    if not 0 < level < 1:
        raise ValueError(f"level {level:g}; expected a number between 0 and 1, both excluded")
    return math.ceil(1 - math.log2(1 - level))


@functools.lru_cache(maxsize=256)
def order_statistics(n: int, level: float = LEVEL) -> tuple[int, float]:
    """(k, coverage): [x_(k), x_(n+1-k)] of n samples covers the median at >= `level`.

    k is the largest such number, counted from 1; 0 if even the
    extremes do not reach `level`.
    """
    tail, k, covered = 0.0, 0, 0.0
    for j in range(n // 2):  # tail = P(Binomial(n, 1/2) <= j)
        log_p = math.lgamma(n + 1) - math.lgamma(j + 1) - math.lgamma(n - j + 1) - n * math.log(2)
        tail += math.exp(log_p)
        if 1 - 2 * tail < level:
            break
        k, covered = j + 1, 1 - 2 * tail
    return k, covered


def precision(samples: Samples) -> float:
    """How far the interval of the median reaches from it, relative; inf without one.

    0.02: both ends of `median_interval` lie within 2 % of the median.
    """
    middle, ends = median(samples), median_interval(samples)
    if ends is None or not middle > 0:
        return math.inf
    return max(ends.high - middle, middle - ends.low) / middle


def quartile_spread(samples: Samples) -> float:
    """The interquartile range over the median; nan without samples, or for a median of 0."""
    low, middle, high = np.quantile(samples, [0.25, 0.5, 0.75]) if len(samples) else (math.nan,) * 3
    return float((high - low) / middle) if middle else math.nan


def drift(samples: Samples) -> float:
    """Median of the last third over that of the first, minus 1; nan for one or two.

    The samples are in the order in which they were measured; a positive drift means
    that times grew. This is an estimate without an interval: in 18 % of all series of
    twelve steady samples that scatter by 5 %, it exceeds 5 % (docs/statistics.md).
    """
    third = len(samples) // 3
    if not third:
        return math.nan
    first = median(samples[:third])
    last = median(samples[-third:])
    return last / first - 1 if first else math.nan
