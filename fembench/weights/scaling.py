"""How time falls as processors are added: speedup, efficiency, the two laws, bounds, growth.

    T   time                     S   speedup          E   efficiency = S / P
    f   sequential fraction of the one-processor time (Amdahl)
    g   sequential fraction of the parallel run's time (Gustafson)
    P   processors

Equation numbers are those of Ferreira (2006).
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from fembench.base.errors import InputError

FEWEST = 3  # different counts of processors that a law is fitted to, one processor among them
Array = npt.NDArray[np.float64]
Values = npt.ArrayLike
Number = TypeVar("Number", float, Array)


class ScalingFit(NamedTuple):
    """A law of one parameter, fitted by least squares."""

    fraction: float  # f or g; no fraction where `fails` says why
    worst: float  # largest |predicted / measured - 1| of the speedups
    fails: str = ""  # why no such law holds, or ""


class Bounds(NamedTuple):
    """Upper bounds on a speedup (Culler and Singh); each counts more of what processors do."""

    work: float  # (3.7)
    waiting: float  # (3.8): with waiting and communication
    extra: float  # (3.9): with work that one processor would not have done


def speedup(alone: float, run: float) -> float:
    """S = T(1) / T(P) (3.1)."""
    return alone / run


def efficiency(alone: float, run: float, processors: float) -> float:
    """E = S / P (3.2). Where processors are unequal see `efficiency.heterogeneous_efficiency`."""
    return alone / run / processors


def against_each(alone: Mapping[str, float], run: float, tasks: int) -> dict[str, tuple[float, float]]:
    """(S, S / tasks) over one task on each machine alone (Ferreira 2006, Section 5.4.6)."""
    return {host: (time / run, time / run / tasks) for host, time in alone.items()}


def amdahl(f: float, processors: Number) -> Number:
    """S = 1 / (f + (1 - f) / P) (3.3)."""
    return 1 / (f + (1 - f) / processors)


def gustafson(g: float, processors: Number) -> Number:
    """S = g + (1 - g) P (3.4)."""
    return g + (1 - g) * processors


def amdahl_fraction(g: float, processors: float) -> float:
    """The f of the law of Amdahl that gives the speedup of g in that of Gustafson (3.5, corrected)."""
    return g / (g + (1 - g) * processors)


def fit_amdahl(processors: Values, speedups: Values) -> ScalingFit:
    """f by least squares in 1 / S = 1/P + f (1 - 1/P), of speedups of one problem.

    Raises InputError for fewer than three different P, the base P = 1 among them: fewer test no law.
    """
    p, s = _points(processors, speedups)
    x, y = 1 - 1 / p, 1 / s - 1 / p
    f = float(x @ y / (x @ x))
    return ScalingFit(f, float(np.abs(amdahl(f, p) / s - 1).max()), _fails(f, s))


def fit_gustafson(processors: Values, speedups: Values) -> ScalingFit:
    """g by least squares in P - S = g (P - 1); the speedups are scaled ones, of problems grown with P.

    Raises InputError as `fit_amdahl` does.
    """
    p, s = _points(processors, speedups)
    x, y = p - 1, p - s
    g = float(x @ y / (x @ x))
    return ScalingFit(g, float(np.abs(gustafson(g, p) / s - 1).max()), _fails(g, s))


def _fails(fraction: float, speedups: Array) -> str:
    """Why `fraction` is no part of a time, or ""; rounding forgiven."""
    if speedups.min() < 1 or fraction > 1:
        return "slower on more ranks"
    return "super-linear" if fraction < -1e-9 else ""


def _points(processors: Values, speedups: Values) -> tuple[Array, Array]:
    p, s = np.asarray(processors, float), np.asarray(speedups, float)
    if p.shape != s.shape or p.ndim != 1:
        raise InputError(f"{p.size} counts of processors and {s.size} speedups; expected as many")
    if not (np.all(p >= 1) and np.any(p > 1) and np.all(s > 0)):
        raise InputError("expected positive speedups, and at least one of more than one processor")
    if len({1.0, *p.tolist()}) < FEWEST:
        raise InputError(
            f"speedups on {sorted({1.0, *p.tolist()})} processors; expected {FEWEST} different counts"
        )
    return p, s


def speedup_bounds(
    sequential: float, work: Values, waiting: Values = 0.0, communication: Values = 0.0, extra: Values = 0.0
) -> Bounds:
    """Bounds on the speedup from what each processor does; all (P,) in the unit of `sequential`."""
    busy = np.atleast_1d(np.asarray(work, float))
    held = busy + np.asarray(waiting, float) + np.asarray(communication, float)
    everything = held + np.asarray(extra, float)
    return Bounds(*(sequential / float(np.max(total)) for total in (busy, held, everything)))


def growth_exponents(sizes: Values, times: Values) -> Array:
    """(n - 1,) exponents k of T ~ n^k between each two consecutive sizes."""
    n, t = np.asarray(sizes, float), np.asarray(times, float)
    return np.asarray(np.diff(np.log(t)) / np.diff(np.log(n)))
