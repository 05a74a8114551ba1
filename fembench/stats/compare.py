"""Is one configuration faster than another? (VALIDITY D2)

Only where the interval of the ratio excludes 1 and the gain exceeds the noise of a comparison of a
configuration with itself in the same session (A/A).
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
    interval: Interval | None  # None: too few samples to tell, or without a spread (unpaired), or one is nan
    n: int
    noise: float  # |ratio - 1| that a comparison with itself reaches; inf where unknown
    in_favour: int = 0  # pairs in which a took longer; 0 of samples that are no pairs

    @property
    def half_width(self) -> float:
        """Half the width of the interval over the ratio; inf where there is none.

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

    The ratio is the median of a[i] / b[i], its interval that of order statistics: a disturbance that hits
    both of a pair cancels, and nothing is assumed but that pairs are independent of each other and that, in
    the median, neither of a pair is favoured by its place. Reverse the order in every second pair, or a
    machine that slows down steadily favours whoever comes first. Fewer than six pairs give no interval.
    Without `noise` nothing is called faster; with a noise of 0, the last digit of the clock is a difference
    where all ratios are identical. No interval where one is nan. Raises ValueError where the numbers of
    samples differ or one is zero or negative.
    """
    if len(a) != len(b):
        raise ValueError(f"paired samples differ in number: {len(a)} and {len(b)}")
    ratio = median_ratio(a, b)
    ratios = np.asarray(a, dtype=float) / np.asarray(b, dtype=float)
    in_favour = int((ratios > 1).sum())
    return Comparison(ratio, median_interval(ratios, level), len(ratios), noise, in_favour)


def compare_unpaired(a: Samples, b: Samples, *, noise: float = math.inf, level: float = LEVEL) -> Comparison:
    """Compare times that were not measured in turns: the ratio of medians, Welch's interval on logarithms.

    Assumes independent samples near to lognormal, three of each at least (`ratio_unpaired`). What differs
    from one moment to the next counts as noise here; where turns are possible, pairs decide with fewer.
    """
    ratio = ratio_unpaired(a, b, level)
    return Comparison(ratio.value, ratio.interval, min(len(a), len(b)), noise)


def noise_of_series(samples: Samples) -> float:
    """A/A noise inside one series: |median ratio of neighbours - 1|; inf of fewer than FEWEST_NOISE.

    Neighbours are compared in pairs, as two configurations in turns are. Raises ValueError where a sample
    is not positive.
    """
    x = np.asarray(samples, dtype=float)
    half = len(x) // 2
    return abs(median_ratio(x[: 2 * half : 2], x[1 : 2 * half : 2]) - 1) if half else math.inf


def median_ratio(a: Samples, b: Samples) -> float:
    """The median of a[i] / b[i]; of an even number the geometric mean of the middle two.

    So b over a is the inverse of a over b. The arithmetic mean of 1/2 and 2 is above 1: it would favour b.
    Raises ValueError where a sample is not positive; nan where one is nan.
    """
    x, y = _positive(a), _positive(b)
    return math.exp(median(np.log(x / y))) if len(x) else math.nan


def _positive(samples: Samples) -> Array:
    """The samples as an array. Raises ValueError where one is zero or negative: ratios of times need more."""
    x = np.asarray(samples, dtype=float)
    if np.any(x <= 0):
        raise ValueError(f"sample {x[x <= 0][0]:g}; expected times above zero")
    return x
