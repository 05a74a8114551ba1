"""Target shares from measured times: the rules `rate`, `time` and `comm`; `tasks` is in slowness.py.

c_p     cost: seconds that rank p computes per cell
S_p,k   speed of rank p in phase k, units of its work per second
C_p     seconds that rank p communicates
N_p     cells of rank p, sum N_p = N
T       the time at which all ranks finish: N_p c_p + C_p = T
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.partition.shares import normalise
from fembench.stats.student import share_intervals
from fembench.stats.summary import LEVEL, Interval

Array = npt.NDArray[np.float64]


class Shares(NamedTuple):
    """Target shares of the cells, one per rank."""

    shares: tuple[float, ...]  # sum to 1
    intervals: tuple[Interval | None, ...]
    cost: tuple[float, ...]  # seconds per cell; relative if only ratios of speeds are known


class EqualFinish(NamedTuple):
    """Shares with which all ranks finish together, including communication."""

    shares: tuple[float, ...]  # sum to 1
    seconds: float  # predicted T: that of the slowest rank
    communication: tuple[float, ...]  # C_p at these shares
    rounds: int
    settled: bool  # the shares moved less than the tolerance in the last round
    left_out: tuple[int, ...]  # ranks whose communication alone takes longer than T: one cell each


def time_shares(cost: npt.ArrayLike, *, level: float = LEVEL) -> Shares:
    """Rule `time`: shares ~ 1 / cost, from (n, P) costs of any run, equal or not.

    Each row (a set, or the median of a run) was measured on all ranks at once and gives one vector of shares:
    a disturbance that slows all ranks alike cancels. The result is the median over rows, with the interval of
    `share_intervals`, which assumes independent rows; None for fewer than three. The returned costs are
    inversely proportional to these shares, so that shares and costs give the same ratio of two ranks; their
    geometric mean is that of the ranks' median costs. Raises InputError if a cost is not positive.
    """
    c = np.atleast_2d(np.asarray(cost, float))
    if c.ndim != 2 or not c.size or not np.all(np.isfinite(c) & (c > 0)):
        raise InputError("costs of ranks; expected positive seconds per cell for every set and rank")
    rows = (1 / c) / (1 / c).sum(axis=1, keepdims=True)
    middle = normalise(np.median(rows, axis=0).tolist())
    scale = np.exp(np.log(np.median(c, axis=0) * middle).mean())  # cost x share: the same for every rank
    return Shares(middle, share_intervals(rows, level), tuple((scale / np.array(middle)).tolist()))


def rate_shares(speeds: npt.ArrayLike, mix: Sequence[float], reference: int | None = None) -> Shares:
    """Rule `rate`: shares from (P, n_phases) speeds and the share of the run that each phase takes.

    c_p = sum over k of mix_k S_ref,k / S_p,k. `mix` (n_phases,) is that of rank `reference`; without one,
    that of a rank with the harmonic mean of all speeds.
    """
    s, m = np.atleast_2d(np.asarray(speeds, float)), np.asarray(mix, float)
    if not s.size or s.shape[1] != m.size:
        raise InputError(f"speeds of {s.shape[1]} phases, a mix of {m.size}; expected the same number")
    if not (np.all(np.isfinite(s) & (s > 0)) and np.all(np.isfinite(m) & (m >= 0)) and m.sum() > 0):
        raise InputError("speeds and mix of phases; expected positive speeds, no negative share in the mix")
    base = 1 / (1 / s).mean(axis=0) if reference is None else s[reference]
    cost = (m / m.sum() * base / s).sum(axis=1)
    return Shares(normalise((1 / cost).tolist()), (None,) * len(cost), tuple(cost.tolist()))


def equal_finish(cost: npt.ArrayLike, communication: npt.ArrayLike, cells: int) -> tuple[Array, float]:
    """((P,) cells, T): N_p = (T - C_p) / c_p with T = (N + sum C / c) / sum 1 / c.

    A rank whose C_p exceeds T gets no cells, and T is that of the other ranks.
    """
    c, C = np.asarray(cost, float), np.asarray(communication, float)
    active = np.ones(len(c), bool)
    while True:
        T = float((cells + (C[active] / c[active]).sum()) / (1 / c[active]).sum())
        late = active & (T <= C)
        if not late.any():
            return np.where(active, (T - C) / c, 0.0), T
        active &= ~late


def comm_shares(
    cost: npt.ArrayLike,
    communication: Callable[[tuple[float, ...]], npt.ArrayLike],
    cells: int,
    *,
    rounds: int = 20,
    tolerance: float = 1e-3,
) -> EqualFinish:
    """Rule `comm`: all ranks finish together, including communication, which depends on the partition.

    `communication(shares)` gives the (P,) seconds C_p of a partition with these shares. The result is the
    round with the least predicted time, since interface sizes may jump between rounds and prevent
    convergence.
    """
    c = np.asarray(cost, float)
    if not c.size or not np.all(np.isfinite(c) & (c > 0)):
        raise InputError("costs of ranks; expected positive seconds per cell, one per rank")
    if cells < len(c):
        raise InputError(
            f"{plural(cells, 'cell')} for {plural(len(c), 'rank')}; expected at least one per rank"
        )
    share, used = np.asarray(normalise((1 / c).tolist())), None
    seen: list[EqualFinish] = []
    settled = False
    while len(seen) < rounds and not settled:
        C = np.asarray(communication(tuple(share.tolist())), float)
        if C.shape != c.shape or not np.all(np.isfinite(C) & (C >= 0)):
            raise InputError(
                f"communication of {plural(C.size, 'rank')}; expected {c.size} times, none negative"
            )
        seconds = float((share * cells * c + C).max())
        left_out = _idle(share, cells)
        seen.append(EqualFinish(tuple(share.tolist()), seconds, tuple(C.tolist()), 0, False, left_out))
        used = C if used is None else (used + C) / 2  # damped: interface sizes jump between partitions
        N = np.maximum(equal_finish(c, used, cells)[0], 1.0)
        settled = bool(np.abs(N / N.sum() - share).max() <= tolerance)
        share = N / N.sum()
    return min(seen, key=lambda f: f.seconds)._replace(rounds=len(seen), settled=settled)


def _idle(share: Array, cells: int) -> tuple[int, ...]:
    """Ranks that got only the one cell that every part must have."""
    return tuple(int(p) for p in np.flatnonzero(share * cells <= 1.0 + 1e-9))
