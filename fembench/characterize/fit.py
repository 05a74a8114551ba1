"""Piecewise straight lines through parameters at increasing sizes, and their breaks.

All curves of one class of pairs break at the same sizes, because they share a
protocol. The breaks minimise

    sum of ((y - line) / error)^2 + pieces x (2 per curve + 1) x ln(points)

over all ways to divide the sizes (dynamic programming); the second term penalises
breaks. Lines are never interpolated across a break. If the model forbids negative
values, neither the first value of a piece nor its slope is negative.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.records.network import CurvePiece, value_at

LEAST = 3  # sizes per piece
MOST = 5  # pieces
PART, WHOLE = 0.2, 0.3  # least jumps at a switch: of a share; of the time, relative


@dataclass(frozen=True)
class Curve:
    """One parameter as a function of message size."""

    y: F64  # (n,)
    error: F64  # (n,) standard error of y, positive
    signed: bool = False  # may be negative

    def __post_init__(self) -> None:
        if self.y.shape != self.error.shape or not np.all(self.error > 0):
            raise InputError("errors of a curve; expected a positive number for every value")


@dataclass(frozen=True)
class PiecewiseFit:
    """Pieces of every curve; they begin at the same sizes."""

    pieces: tuple[tuple[CurvePiece, ...], ...]  # [curve]
    sizes: F64  # (n,) as given

    @property
    def breaks(self) -> tuple[float, ...]:
        """First sizes of all pieces except the first."""
        return tuple(piece.first for piece in self.pieces[0][1:])


def fit_jointly(sizes: Sequence[float], curves: Sequence[Curve], most: int = MOST) -> PiecewiseFit:
    """The best pieces for all curves; sizes ascend. Raises InputError for one or two."""
    m = np.asarray(sizes, float)
    if len(m) < LEAST or not np.all(np.diff(m) > 0):
        raise InputError(f"{len(m)} message sizes; expected at least {LEAST}, ascending")
    lines = [_lines(m, curve) for curve in curves]
    cost = np.sum([chi for _, _, chi in lines], axis=0)
    penalty = (2 * len(curves) + 1) * np.log(len(m) * len(curves))
    starts = _cut(cost, penalty, most)
    ends = [*(s - 1 for s in starts[1:]), len(m) - 1]
    return PiecewiseFit(
        tuple(
            tuple(
                CurvePiece(first=float(m[i]), coefficients=(float(a[i, j]), float(b[i, j])))
                for i, j in zip(starts, ends)
            )
            for a, b, _ in lines
        ),
        m,
    )


def _lines(m: F64, curve: Curve) -> tuple[F64, F64, F64]:
    """(n, n) arrays [i, j]: first value, slope, misfit of the line through sizes i to j."""
    n = len(m)
    k = np.arange(n)
    inside = (k[:, None, None] <= k) & (k <= k[None, :, None])  # [i, j, k]
    w = inside / curve.error**2
    x = (m - m[:, None])[:, None, :]  # [i, 1, k]
    s0 = w.sum(-1)
    s1 = (w * x).sum(-1)
    s2 = (w * x * x).sum(-1)
    t0, t1 = (w * curve.y).sum(-1), (w * x * curve.y).sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        determinant = s0 * s2 - s1 * s1
        b = np.where(determinant > 0, (s0 * t1 - s1 * t0) / determinant, 0.0)
        a = (t0 - b * s1) / s0
        if not curve.signed:
            b = np.where(a < 0, np.maximum(t1 / s2, 0.0), b)
            a = np.where(a < 0, 0.0, a)
            a = np.where(b < 0, np.maximum(t0 / s0, 0.0), a)
            b = np.maximum(b, 0.0)
    residual = curve.y - a[:, :, None] - b[:, :, None] * x
    return a, b, np.where(inside, w * residual**2, 0.0).sum(-1)


def _cut(cost: F64, penalty: float, most: int) -> list[int]:
    """First indices of the pieces, each of LEAST sizes, with the least total cost[i, j]."""
    n = len(cost)
    best = np.full((most + 1, n + 1), np.inf)  # [pieces, sizes covered]
    came = np.zeros((most + 1, n + 1), int)
    best[0, 0] = 0.0
    for pieces in range(1, most + 1):
        for end in range(LEAST, n + 1):
            totals = best[pieces - 1, : end - LEAST + 1] + cost[: end - LEAST + 1, end - 1]
            came[pieces, end] = np.argmin(totals)
            best[pieces, end] = totals[came[pieces, end]]
    pieces = int(np.argmin(best[1:, n] + penalty * np.arange(1, most + 1))) + 1
    starts, end = [], n
    for count in range(pieces, 0, -1):
        end = int(came[count, end])
        starts.append(end)
    return starts[::-1]


def find_switch(fit: PiecewiseFit) -> int | None:
    """The size from which messages wait for a receiver, from Os, L, Or; or None.

    The protocol is taken to change at the break where the share of Os, L or Or changes
    most; otherwise, at the break where the total time jumps most, because the handshake
    takes time. Smaller jumps are attributed to the network.
    """
    parts, wholes = zip(*(_jumps(fit, first) for first in fit.breaks)) if fit.breaks else ((), ())
    for jumps, least in ((parts, PART), (wholes, WHOLE)):
        if jumps and max(jumps) > least:
            return int(fit.breaks[jumps.index(max(jumps))])
    return None


def _jumps(fit: PiecewiseFit, first: float) -> tuple[float, float]:
    """Compare the lines on both sides of a break, at a size between the two.

    Returns (largest change of the share of Os, L or Or, relative change of the total).
    """
    number = int(np.searchsorted(fit.sizes, first))
    between = float(np.sqrt(fit.sizes[number - 1] * first))
    k = fit.breaks.index(first) + 1
    left = np.array([value_at(pieces[k - 1 : k], between) for pieces in fit.pieces])
    right = np.array([value_at(pieces[k : k + 1], between) for pieces in fit.pieces])
    before = max(abs(left.sum()), 1e-300)
    after = max(abs(right.sum()), 1e-300)
    return float(np.abs(right / after - left / before).max()), float(abs(after / before - 1))
