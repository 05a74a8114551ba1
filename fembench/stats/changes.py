"""Changes of the level of a series: the door to the package ruptures.

PELT (Killick, Fearnhead and Eckley, J. Am. Stat. Assoc. 107 (2012) 1590-1598) divides a
series into levels so that the squares of the deviations, in units of the noise, plus a
penalty for each level are least. The noise is the larger of two: that between neighbours,
and that between means of three neighbours, which is larger if neighbours depend on each
other. Values far from their neighbours are moved nearer first: one slow night is no change.
"""

import numpy as np

from fembench.base.arrays import F64
from fembench.stats.student import student_factor
from fembench.stats.summary import LEVEL, Samples

FEWEST_POINTS = 9  # of a series that is searched
SHORTEST = 3  # points of a level
FAR = 2.0  # noises from the median of five neighbours: a value beyond is moved there
MEAN_TO_SIGMA, MEDIAN_TO_SIGMA = np.sqrt(np.pi / 2), 1.4826  # of the size of normal deviations


def change_points(values: Samples, tests: int = 1) -> list[int]:
    """The indices at which a new level begins, in a series of positive values.

    Assumes deviations of about one size, and little dependence between neighbours. The
    penalty is the square of Student's factor at a level that allows for every place of a
    change and for `tests` series: docs/statistics.md says how rarely a steady series has
    a change. None is found among fewer than nine values; with more, ruptures is needed.
    """
    x = np.log(np.asarray(values, float))
    n = len(x)
    sigma = noise_of(x) if n >= FEWEST_POINTS else 0.0
    if not sigma > 0:
        return []
    from ruptures import KernelCPD

    factor = student_factor(n // 2, 1 - (1 - LEVEL) / (n * tests))
    scaled = _near(x / sigma)[:, None]
    found = KernelCPD(kernel="linear", min_size=SHORTEST).fit(scaled).predict(pen=factor**2)
    return [int(k) for k in found[:-1]]


def noise_of(x: F64) -> float:
    """The standard deviation of single values around a level that may change."""
    means = _windows(x, SHORTEST).mean(axis=1)
    apart = np.abs(means[SHORTEST:] - means[:-SHORTEST])
    of_neighbours = MEAN_TO_SIGMA * np.abs(np.diff(x)).mean() / np.sqrt(2)
    of_means = MEDIAN_TO_SIGMA * np.median(apart) * np.sqrt(SHORTEST / 2)
    return float(max(of_neighbours, of_means))


def _near(x: F64) -> F64:
    """The values, those far from the median of five neighbours moved nearer."""
    middle = np.median(_windows(np.pad(x, 2, mode="reflect"), 5), axis=1)
    return np.asarray(np.clip(x, middle - FAR, middle + FAR))


def _windows(x: F64, n: int) -> F64:
    return np.lib.stride_tricks.sliding_window_view(x, n)
