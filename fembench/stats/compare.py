"""Is one configuration faster than another? (VALIDITY D2)

Only where the interval of the ratio excludes 1 and the gain exceeds the noise of a comparison of a
configuration with itself in the same session (A/A).
"""

import math
from typing import NamedTuple

import numpy as np

from fembench.stats.bootstrap import RESAMPLES, percentile_interval, replicates
from fembench.stats.summary import LEVEL, Interval, Samples, median, median_interval


class Comparison(NamedTuple):
    """Times of `a` over times of `b`."""

    ratio: float  # above 1: a takes longer
    interval: Interval | None  # None: too few samples to tell
    n: int
    noise: float  # |ratio - 1| that a comparison with itself reaches; inf where unknown

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

    The ratio is the median of a[i] / b[i], its interval that of order statistics, so a disturbance
    that hits both of a pair cancels. Without `noise` nothing is called faster. Raises ValueError
    where the numbers of samples differ.
    """
    if len(a) != len(b):
        raise ValueError(f"paired samples differ in number: {len(a)} and {len(b)}")
    ratios = np.asarray(a, dtype=float) / np.asarray(b, dtype=float)
    return Comparison(median(ratios), median_interval(ratios, level), len(ratios), noise)


def compare_unpaired(
    a: Samples,
    b: Samples,
    rng: np.random.Generator,
    *,
    noise: float = math.inf,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> Comparison:
    """Compare times that were not measured in turns: the ratio of medians, its interval by bootstrap."""
    n = min(len(a), len(b))
    ratio = median(a) / median(b)
    if n < 2:
        return Comparison(ratio, None, n, noise)
    values = replicates(a, rng, resamples=resamples) / replicates(b, rng, resamples=resamples)
    return Comparison(ratio, percentile_interval(values, level), n, noise)


def noise_of_pair(first: Samples, second: Samples) -> float:
    """A/A noise: |ratio of medians - 1| of one configuration measured as two; inf where one is empty."""
    if not len(first) or not len(second):
        return math.inf
    return abs(median(first) / median(second) - 1)


def noise_of_series(samples: Samples) -> float:
    """A/A noise inside one series: its odd against its even samples; inf of fewer than two."""
    return noise_of_pair(samples[::2], samples[1::2])
