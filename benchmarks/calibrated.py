"""Whether intervals contain as many outcomes as they claim, if the outcomes of one session are alike.

All configurations of a session share what the machine does during it, so their outcomes are correlated: n of
them say as much as n / (1 + (n - 1) rho) independent ones. The number inside is then beta-binomial: the
probability of being inside varies between sessions around the nominal one, with variance rho p (1 - p).
docs/decisions/0012-coverage-as-a-test.md has the reasons for the numbers.
"""

import math

import numpy as np

NOMINAL = 0.9  # of an interval
ALIKE = 0.05  # rho: correlation of being inside between two configurations of one session
LEVEL = 0.95
WIDEST = 2.5  # half-width over the 90th percentile of |error|: exact intervals are beyond in 1 % of sessions


def effective(n: int, alike: float = ALIKE) -> float:
    """The number of independent configurations that say as much as n of one session."""
    return n / (1 + (n - 1) * alike)


def count_region(
    n: int, nominal: float = NOMINAL, alike: float = ALIKE, level: float = LEVEL
) -> tuple[int, int]:
    """(least, most) of n correlated outcomes inside intervals that keep their promise.

    Fewer than the least have probability (1 - level) / 2 or less, and so have more than the most. `alike` is
    above 0 and below 1.
    """
    a, b = nominal * (1 / alike - 1), (1 - nominal) * (1 / alike - 1)
    logs = [_log_beta(k + a, n - k + b) - _log_beta(k + 1, n - k + 1) for k in range(n + 1)]
    below = np.cumsum(np.exp(np.array(logs) - _log_beta(a, b) - math.log(n + 1)))
    tail = (1 - level) / 2
    return int(np.argmax(below > tail)), int(np.argmax(below >= 1 - tail))


def coverage_text(n: int) -> str:
    """The region in words: 'intervals cover 67 to 100 % of 24 cells'."""
    least, most = count_region(n)
    return f"intervals cover {least / n:.0%} to {most / n:.0%} of {n} cells"


def covers(coverage: float, n: int) -> bool:
    """Whether the coverage of n configurations of a session is within the region."""
    least, most = count_region(n)
    return least - 1e-9 <= coverage * n <= most + 1e-9


def not_too_wide(half_width: float, p90: float) -> bool:
    """Whether intervals are about as wide as the errors are large; both relative to the prediction."""
    return half_width <= WIDEST * p90


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
