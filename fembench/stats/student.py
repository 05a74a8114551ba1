"""Intervals from few positive samples: Student's t on their logarithms.

Times and their ratios scatter by factors, so their logarithms are closer to a normal
distribution. An interval needs three samples: with two, Student's factor is 12.7, and
two samples that happen to agree look certain. Identical samples have no interval,
because the clock did not resolve their spread. docs/statistics.md gives the simulated
coverage of each interval, including cases that violate its assumptions.

Samples grouped in runs: the run is the unit of the statistics.

The sets of one run share a processor speed, a placement in memory and other load on
the host. They show how precisely the time of that run is known, but not how much the
next run will differ. An interval over pooled sets misses the true value in half of all
cases (docs/statistics.md)."""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.base.arrays import F64
from fembench.stats.summary import LEVEL, Interval, Samples, median, median_interval

FEWEST = 3  # samples that Student's interval needs


class Ratio(NamedTuple):
    """The ratio of two typical times, a over b."""

    value: float
    interval: Interval | None  # None: too few samples on one side, or no spread on either


def typical_interval(samples: Samples, level: float = LEVEL) -> Interval | None:
    """The interval of the median of independent samples: runs, or ratios of pairs.

    Six or more samples: order statistics, which assume nothing about the distribution
    and cover with probability `level` or more. Three to five: Student's t on
    logarithms, which assumes approximately lognormal samples; None if one is not
    positive or all are identical. None for fewer than three samples and if one is nan.
    """
    ordered = median_interval(samples, level)
    student = None if ordered else log_interval(samples, level)
    if student is None:
        return ordered
    middle = median(samples)  # rounding may put it just outside
    return student._replace(low=min(student.low, middle), high=max(student.high, middle))


def log_interval(samples: Samples, level: float = LEVEL) -> Interval | None:
    """Student's interval of the geometric mean; None for fewer than three samples.

    Assumes independent, approximately lognormal samples, whose geometric mean is their
    median. None if one is not positive or is nan, or if all are identical.
    """
    return _by_student(samples, level, 0)


def next_interval(samples: Samples, level: float = LEVEL) -> Interval | None:
    """Student's prediction interval for one more sample, on logarithms.

    Assumes independent, approximately lognormal samples, and that the next one has the
    same distribution. None in the same cases as `log_interval`.
    """
    return _by_student(samples, level, 1)


def _by_student(samples: Samples, level: float, more: int) -> Interval | None:
    x = np.asarray(samples, dtype=float)
    if not _spread(x):
        return None
    low, high = log_ends(x, level, more)
    return Interval(float(low), float(high), level)


def _enough(x: F64) -> bool:
    """Whether there are at least three samples, all of them positive and finite."""
    return len(x) >= FEWEST and bool(np.all(np.isfinite(x) & (x > 0)))


def _spread(x: F64) -> bool:
    """`_enough` samples whose logarithms are not all identical."""
    return _enough(x) and float(np.ptp(np.log(x))) > 0


def log_ends(x: F64, level: float = LEVEL, more: int = 0) -> tuple[F64, F64]:
    """(low, high) of `log_interval`, along the last axis of positive x (..., n), n >= 2.

    With `more` = 1, for one sample more: those of `next_interval`.
    """
    logs = np.log(x)
    n = logs.shape[-1]
    half = student_factor(n - 1, level) * logs.std(axis=-1, ddof=1) * math.sqrt(more + 1 / n)
    return np.exp(logs.mean(axis=-1) - half), np.exp(logs.mean(axis=-1) + half)


def ratio_unpaired(a: Samples, b: Samples, level: float = LEVEL) -> Ratio:
    """Ratio of medians of samples not measured in turns; Welch's interval, on logarithms.

    Assumes approximately lognormal samples, independent within and between a and b; the
    two spreads may differ. There is no interval if a or b has fewer than three samples,
    if a sample is not positive or is nan, or if neither a nor b has a spread. Give one
    sample per run (its median): the sets of one run are not independent.
    """
    x = np.asarray(a, dtype=float)
    y = np.asarray(b, dtype=float)
    value = median(x) / median(y) if len(x) and len(y) and median(y) else math.nan
    if not (_enough(x) and _enough(y) and (_spread(x) or _spread(y))):
        return Ratio(value, None)
    low, high = welch_ends(x, y, level)
    return Ratio(value, Interval(min(float(low), value), max(float(high), value), level))


def welch_ends(a: F64, b: F64, level: float = LEVEL) -> tuple[F64, F64]:
    """(low, high) of the ratio of geometric means, over last axes of a (..., n), b (..., m).

    Welch's degrees of freedom, capped at those of two series of the shorter length: the
    spread of a much shorter one is known too poorly for the formula.
    """
    x, y = np.log(a), np.log(b)
    u, v = (z.var(axis=-1, ddof=1) / z.shape[-1] for z in (x, y))
    parts = u**2 / (x.shape[-1] - 1) + v**2 / (y.shape[-1] - 1)
    fewest = min(x.shape[-1], y.shape[-1]) - 1.0
    df = np.divide((u + v) ** 2, parts, out=np.full_like(parts, fewest), where=parts > 0)
    half = student_factors(np.minimum(df, 2 * fewest), level) * np.sqrt(u + v)
    middle = x.mean(axis=-1) - y.mean(axis=-1)
    return np.exp(middle - half), np.exp(middle + half)


def share_intervals(shares: npt.ArrayLike) -> tuple[Interval | None, ...]:
    """(P,) intervals of the ranks' shares from (n, P), rows measured on all ranks at once.

    `typical_interval` of each column: it assumes independent rows and, for fewer than
    six, an approximately lognormal share of each rank. None for fewer than three rows.
    No share exceeds 1, hence no interval does.
    """
    found = (typical_interval(column) for column in np.asarray(shares, dtype=float).T)
    return tuple(each and each._replace(high=min(each.high, 1.0)) for each in found)


@functools.lru_cache(maxsize=256)
def student_factor(df: int, level: float = LEVEL) -> float:
    """Half the width of an interval of `level`, in standard errors, with df freedoms."""
    return float(student_factors(np.float64(df), level))


def student_factors(df: npt.ArrayLike, level: float = LEVEL) -> F64:
    """`student_factor` for an array of degrees of freedom, which need not be integers."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(df, (1 + level) / 2))


class ByRun(NamedTuple):
    """The typical time of several runs of one case."""

    medians: tuple[float, ...]  # of each run
    median: float  # of those medians; nan if there are no runs
    interval: Interval | None  # of that median over all such runs; None: fewer than three runs
    within: tuple[Interval | None, ...]  # of each run's median, which more sets of that run would approach
    apart: bool  # two runs differ by more than the spread of their sets explains


def by_run(runs: Sequence[Samples]) -> ByRun:
    """The typical time from n_runs series of sets, one series per run.

    `interval` is `typical_interval` of the runs' medians: it assumes independent runs,
    and an approximately lognormal distribution if there are only three to five.
    `within` assumes that the sets of a run are independent given the run, and needs six
    of them. `apart`: the intervals of two runs are disjoint at the level of
    `range_level`, so that equal runs are called apart in less than one case in twenty,
    however many runs there are.
    """
    medians = tuple(median(run) for run in runs)
    joint = [found for run in runs if (found := median_interval(run, range_level(len(runs))))]
    return ByRun(
        medians=medians,
        median=median(medians),
        interval=typical_interval(medians),
        within=tuple(median_interval(run) for run in runs),
        apart=bool(joint) and max(i.low for i in joint) > min(i.high for i in joint),
    )


def range_level(n: int) -> float:
    """The level of each of n intervals that, for equal runs, all overlap at LEVEL.

    Two intervals are disjoint only if their centres differ by more than the sum of
    their half-widths. Therefore LEVEL itself suffices for up to five intervals; for
    more, 1 - 5 (1 - LEVEL) / n follows Tukey's studentized range.
    """
    return 1 - (1 - LEVEL) * min(1.0, 5 / max(n, 1))
