"""The captured gain, (e - w) / (e - i), and its interval by Fieller's theorem.

E. C. Fieller, Some problems in interval estimation, J. Roy. Statist. Soc. B 16 (1954) 175-185. The interval
contains every g for which Student's test does not reject a mean of zero for (e - w) - g (e - i). If it does
not reject a denominator of zero either, the interval is unbounded: there is nothing to capture.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.stats.student import FEWEST, student_factor
from fembench.stats.summary import LEVEL

Array = npt.NDArray[np.float64]


class Moments(NamedTuple):
    """Means of e - w and e - i, and the variances and covariance of these means."""

    saved: Array
    room: Array
    var_saved: Array
    var_room: Array
    cov: Array
    df: int


def moments(equal: Array, weighted: Array, ideal: Array) -> Moments:
    """The moments along the last axis of three series of samples.

    `equal` and `weighted` of the same length count as pairs; otherwise as independent series. `ideal` is
    independent of both, and exact if it is a single number. The degrees of freedom are those of the shortest
    series, which is conservative.
    """
    e, w, i = equal, weighted, ideal
    n = e.shape[-1]
    v_i = i.var(axis=-1, ddof=1) / i.shape[-1] if i.shape[-1] > 1 else np.zeros(i.shape[:-1])
    saved, room = e.mean(axis=-1) - w.mean(axis=-1), e.mean(axis=-1) - i.mean(axis=-1)
    v_e = e.var(axis=-1, ddof=1) / n
    lengths = [s.shape[-1] for s in (e, w, i) if s.shape[-1] > 1]
    if w.shape[-1] == n:
        d = e - w
        cov = ((d - d.mean(axis=-1, keepdims=True)) * e).sum(axis=-1) / (n - 1) / n
        return Moments(saved, room, d.var(axis=-1, ddof=1) / n, v_e + v_i, cov, min(lengths) - 1)
    v_w = w.var(axis=-1, ddof=1) / w.shape[-1]
    return Moments(saved, room, v_e + v_w, v_e + v_i, v_e, min(lengths) - 1)


def fieller(m: Moments, level: float = LEVEL) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """(low, high, bounded) of the ratio saved / room; if not bounded, the ends are meaningless."""
    t2 = student_factor(m.df, level) ** 2
    a = m.room**2 - t2 * m.var_room
    b = m.saved * m.room - t2 * m.cov
    c = m.saved**2 - t2 * m.var_saved
    bounded = (a > 0) & (m.room > 0)
    root = np.sqrt(np.maximum(b * b - a * c, 0.0))
    safe = np.where(bounded, a, 1.0)
    return (b - root) / safe, (b + root) / safe, bounded


def enough(equal: Array, weighted: Array, ideal: Array) -> bool:
    """Whether there are enough samples for an interval: three of each; the ideal may be one number."""
    return min(len(equal), len(weighted)) >= FEWEST and (len(ideal) == 1 or len(ideal) >= FEWEST)
