"""A law fitted to runs in Extra-P's performance model normal form (Calotoiu et al., SC'13).

    T x P = c0 + c1  n^k log2(n)^l  P^i log2(P)^j          c0, c1 >= 0

The cost T x P is fitted, because Extra-P's terms only grow, whereas times fall in strong scaling. The
exponents minimise the leave-one-out error (symmetric mean absolute percentage error); in a tie, the smallest
are taken. The law depends on the number of ranks and the size of the mesh, but not on shares, speeds or the
network.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.base.errors import InputError
from fembench.base.units import plural

Array = npt.NDArray[np.float64]
POWERS = (0, 1 / 4, 1 / 3, 1 / 2, 2 / 3, 3 / 4, 1, 5 / 4, 4 / 3, 3 / 2, 2)
LOGARITHMS = (0, 1, 2)
LEAST = 3  # runs needed for a fit


class NormalForm(NamedTuple):
    """The law c0 + c1 n^k log2(n)^l P^i log2(P)^j."""

    constant: float
    factor: float
    n: tuple[float, float]  # k, l
    ranks: tuple[float, float]  # i, j

    def seconds(self, n: float, ranks: int) -> float:
        """T, the cost divided by the number of ranks."""
        return (self.constant + self.factor * _term(n, ranks, self.n, self.ranks)) / ranks


def fit_law(n: Sequence[float], ranks: Sequence[int], seconds: Sequence[float]) -> NormalForm:
    """The best law for these runs. Raises InputError for fewer than three."""
    if len(seconds) < LEAST:
        raise InputError(f"{plural(len(seconds), 'run')} to fit a law to; expected at least {LEAST}")
    cost = np.asarray(seconds, float) * np.asarray(ranks, float)
    exponents = sorted(itertools.product(POWERS, LOGARITHMS), key=sum)
    forms = itertools.product(exponents, exponents)
    best, least = NormalForm(float(np.median(cost)), 0.0, (0, 0), (0, 0)), np.inf
    for of_n, of_ranks in sorted(forms, key=lambda pair: sum(map(sum, pair))):
        x = np.array([_term(a, p, of_n, of_ranks) for a, p in zip(n, ranks)])
        if not np.ptp(x) > 0:
            continue
        error = _left_out(x, cost)
        if error < 0.999 * least:  # prefers the simpler of two laws that are equally good
            least, best = error, NormalForm(*_line(x, cost), of_n, of_ranks)
    return best


def _term(n: float, ranks: int, of_n: tuple[float, float], of_ranks: tuple[float, float]) -> float:
    a = n ** of_n[0] * np.log2(n) ** of_n[1]
    return float(a * ranks ** of_ranks[0] * (np.log2(ranks) ** of_ranks[1] if of_ranks[1] else 1.0))


def _line(x: Array, y: Array) -> tuple[float, float]:
    """(c0, c1), not negative, by least relative squares."""
    w = 1 / y**2
    s0, s1, s2, t0, t1 = w.sum(), (w * x).sum(), (w * x * x).sum(), (w * y).sum(), (w * x * y).sum()
    determinant = s0 * s2 - s1 * s1
    if determinant > 1e-12 * s0 * s2:
        c0, c1 = (s2 * t0 - s1 * t1) / determinant, (s0 * t1 - s1 * t0) / determinant
        if c0 >= 0 and c1 >= 0:
            return float(c0), float(c1)
    alone = [(float(t0 / s0), 0.0), (0.0, max(float(t1 / s2), 0.0) if s2 else 0.0)]
    return min(alone, key=lambda c: float((w * (y - c[0] - c[1] * x) ** 2).sum()))


def _left_out(x: Array, y: Array) -> float:
    """Mean error of each run predicted from the others."""
    errors = []
    for k in range(len(y)):
        c0, c1 = _line(np.delete(x, k), np.delete(y, k))
        guess = c0 + c1 * x[k]
        errors.append(2 * abs(guess - y[k]) / (guess + y[k]))
    return float(np.mean(errors))
