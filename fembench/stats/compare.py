"""Is one configuration faster than another?

Only if the interval of the ratio excludes 1 and the gain exceeds the A/A noise: the difference found when a
configuration is compared with itself in the same session.
"""

import math
from typing import NamedTuple

import numpy as np

from fembench.stats.student import Array, ratio_unpaired
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

        Measuring until this is small enough, whatever the ratio, keeps the rate of false alarms
        (docs/statistics.md); stopping at the first favourable verdict does not.
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

    The ratio is the median of a[i] / b[i]; its interval comes from order statistics. A disturbance that hits
    both members of a pair cancels. The only assumptions are that pairs are independent of each other and
    that, in the median, the order within a pair favours neither. Reverse the order in every second pair;
    otherwise a host that slows down steadily favours whichever runs first. There is no interval for fewer
    than six pairs or if a sample is nan. Without `noise`, nothing is called faster. With a noise of 0 and
    identical ratios, a difference in the last digit of the clock counts. Raises ValueError if the numbers of
    samples differ or if a sample is not positive.
    """
    if len(a) != len(b):
        raise ValueError(f"paired samples differ in number: {len(a)} and {len(b)}")
    ratio = median_ratio(a, b)
    ratios = np.asarray(a, dtype=float) / np.asarray(b, dtype=float)
    in_favour = int((ratios > 1).sum())
    return Comparison(ratio, median_interval(ratios, level), len(ratios), noise, in_favour)


def compare_unpaired(a: Samples, b: Samples, *, noise: float = math.inf, level: float = LEVEL) -> Comparison:
    """Compare times that were not measured in turns: the ratio of medians, Welch's interval on logarithms.

    Assumes independent, approximately lognormal samples, at least three of each (`ratio_unpaired`). Changes
    of the host over time count as noise here; if turns are possible, pairs need fewer samples.
    """
    ratio = ratio_unpaired(a, b, level)
    return Comparison(ratio.value, ratio.interval, min(len(a), len(b)), noise)


def noise_of_series(samples: Samples) -> float:
    """A/A noise within one series: |median ratio of neighbours - 1|; inf for fewer than FEWEST_NOISE.

    Neighbours are compared in pairs, like two configurations measured in turns. Raises ValueError if a
    sample is not positive.
    """
    x = np.asarray(samples, dtype=float)
    half = len(x) // 2
    return abs(median_ratio(x[: 2 * half : 2], x[1 : 2 * half : 2]) - 1) if half else math.inf


def median_ratio(a: Samples, b: Samples) -> float:
    """The median of a[i] / b[i]; for an even number, the geometric mean of the middle two.

    The ratio of b to a is thus the inverse of that of a to b. The arithmetic mean of 1/2 and 2 is above 1
    and would favour b. The result is nan if a sample is nan. Raises ValueError if one is not positive.
    """
    x, y = _positive(a), _positive(b)
    return math.exp(median(np.log(x / y))) if len(x) else math.nan


def _positive(samples: Samples) -> Array:
    """The samples as an array. Raises ValueError if one is zero or negative: it has no logarithm."""
    x = np.asarray(samples, dtype=float)
    if np.any(x <= 0):
        raise ValueError(f"sample {x[x <= 0][0]:g}; expected times above zero")
    return x
