"""Percentile bootstrap: the interval of any statistic, by resampling (Efron & Tibshirani 1993, ch. 13)."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fembench.stats.summary import LEVEL, Interval, Samples

Statistic = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]  # (k, n) -> (k,)
RESAMPLES = 4000
CHUNK = 1 << 21  # numbers drawn at a time


def median_rows(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(k,) medians of the rows of x (k, n)."""
    return np.asarray(np.median(x, axis=1))


def mean_rows(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(k,) means of the rows of x (k, n)."""
    return np.asarray(x.mean(axis=1))


def bootstrap_interval(
    samples: Samples,
    rng: np.random.Generator,
    *,
    statistic: Statistic = median_rows,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> Interval | None:
    """The interval of a statistic; None of fewer than two samples, which say nothing on their spread."""
    if len(samples) < 2:
        return None
    return percentile_interval(replicates(samples, rng, statistic=statistic, resamples=resamples), level)


def replicates(
    samples: Samples,
    rng: np.random.Generator,
    *,
    statistic: Statistic = median_rows,
    resamples: int = RESAMPLES,
) -> npt.NDArray[np.float64]:
    """(resamples,) values of the statistic on samples drawn with replacement."""
    x = np.asarray(samples, dtype=float)
    rows = max(1, CHUNK // len(x))
    parts = []
    for start in range(0, resamples, rows):
        drawn = rng.integers(len(x), size=(min(rows, resamples - start), len(x)))
        parts.append(statistic(x[drawn]))
    return np.concatenate(parts)


def percentile_interval(values: npt.NDArray[np.float64], level: float = LEVEL) -> Interval:
    """The central `level` of replicated values."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level)
