"""Which of several equal things is slow, by their rates in the same rounds.

Rates are divided by the typical rate of their round, so that whatever hits all things
alike cancels. A thing is slow if both statements hold:

    relevant   the interval of its ratio to the typical thing ends below 1 - RELEVANT. All intervals hold
               together with probability LEVEL (Sidak's correction for the number of tests); therefore a set
               of things that are within RELEVANT of each other contains a slow one in at most one case of 20
    unusual    its ratio is more than FENCE robust standard deviations below the median of all ratios
               (Iglewicz and Hoaglin 1993), so that a wide but ordinary spread is no finding. Fewer than
               FEWEST_SPREAD things do not show what is ordinary; the first statement decides

A ratio is the median over the rounds, on logarithms. Once slow things are known, it is
that to the typical one of the others: with half of them slow, the median of all lies
between. Its interval is Student's, with the median absolute deviation over the rounds:
that of the thing, or the typical one of all things if it is larger. Therefore single
disturbed rounds neither make a thing slow nor hide that it is. The rounds of a thing
are assumed to be independent; tests/stats/test_outliers.py simulates the rate of false
alarms.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.base.arrays import F64, Mask
from fembench.stats.student import student_factor
from fembench.stats.summary import LEVEL

RELEVANT = 0.05  # a smaller deficit is no finding
FENCE = 3.5  # robust standard deviations
FEWEST_ALIKE = 3  # things; of two, nobody knows which one is normal
FEWEST_SPREAD = 5  # things
FEWEST_ROUNDS = 3
RESOLUTION = 1e-3  # relative scatter that is always assumed
TO_SIGMA = 1.4826  # of a normal distribution, over its median absolute deviation
OF_MEDIAN = 1.2533  # standard error of a median over that of a mean
OF_DEVIATION = 0.37  # efficiency of the median absolute deviation


class Ratios(NamedTuple):
    """(n,) ratios to the typical thing, with the ends of their joint intervals."""

    ratio: F64
    low: F64
    high: F64
    slow: Mask


def ratios_alike(rates: npt.ArrayLike, tests: int = 0) -> Ratios:
    """Compare (n, rounds) positive rates of n things of one kind, column by round.

    `tests`: number of ratios whose intervals hold together, these and others (default:
    n). Raises ValueError for fewer than FEWEST_ALIKE things or FEWEST_ROUNDS rounds, or
    a rate that is not positive.
    """
    x = np.asarray(rates, dtype=float)
    if x.ndim != 2 or x.shape[0] < FEWEST_ALIKE or x.shape[1] < FEWEST_ROUNDS:
        raise ValueError(
            f"rates of shape {x.shape}; expected ({FEWEST_ALIKE} or more, {FEWEST_ROUNDS} or more)"
        )
    if not np.all((x > 0) & np.isfinite(x)):
        raise ValueError("rates: expected positive numbers")
    logs = np.log(x)
    return from_deviations(logs - np.median(logs, axis=0), tests)


def from_deviations(deviations: F64, tests: int = 0) -> Ratios:
    """As `ratios_alike`, from (n, rounds) logarithms of ratios to the typical ones."""
    n, rounds = deviations.shape
    centre = np.median(deviations, axis=1)
    centre = centre - np.median(centre)
    error = standard_error(deviations)
    df = max(rounds - 1, round(OF_DEVIATION * n * (rounds - 1)))
    half = student_factor(df, joint_level(tests or n)) * error
    slow = centre + half < np.log1p(-RELEVANT)
    if n >= FEWEST_SPREAD:
        slow &= centre < -FENCE * max(float(_sigma(centre)), float(np.median(error)))
    if slow.any():  # the typical one is normal; of two, the slower, as a fast one is no measure
        centre = centre - np.quantile(centre[~slow], 0.5, method="lower")
    return Ratios(np.exp(centre), np.exp(centre - half), np.exp(centre + half), slow)


def standard_error(deviations: F64) -> F64:
    """(n,) standard errors of the medians over rounds of (n, rounds) logarithms."""
    own = _sigma(deviations)
    return np.asarray(OF_MEDIAN * np.maximum(own, np.median(own)) / np.sqrt(deviations.shape[1]))


def joint_level(tests: int) -> float:
    """The level of each of `tests` intervals that hold together at LEVEL (Sidak 1967)."""
    return float(LEVEL ** (1 / max(tests, 1)))


def _sigma(x: F64) -> F64:
    """Robust standard deviations along the last axis, corrected for few samples."""
    n = x.shape[-1]
    middle = np.median(x, axis=-1, keepdims=True)
    deviation = np.median(np.abs(x - middle), axis=-1)
    return np.asarray(np.maximum(TO_SIGMA * deviation * n / (n - 0.8), RESOLUTION))
