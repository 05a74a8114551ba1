"""Speed of ranks and cost of cells, kept apart: the one goes to target shares, the other to cell weights.

    t_rp = (sum over kinds k of a_k n_rpk) / s_p     run r, rank p, n_rpk cells of kind k

Times alone cannot always tell a slow rank from costly cells: if rank 0 always had all the costly
cells, either explains its time. Over several runs with other partitions they separate.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.base.errors import InputError

Array = npt.NDArray[np.float64]
SEPARABLE = 0.02  # least relative strength of the direction that tells the two apart
NOISE = 0.1  # most that the error of the model may reach of that direction's strength


class Factors(NamedTuple):
    """Relative speeds of ranks and relative costs of kinds of cells."""

    speeds: Array  # (P,) mean 1
    costs: Array  # (n_kinds,) of the first kind 1
    residual: float  # root mean square of the relative error of the model


def factors(seconds: npt.ArrayLike, counts: npt.ArrayLike) -> Factors | None:
    """Both factors from (n_runs, P) seconds and (n_runs, P, n_kinds) counts; None: cannot be told apart.

    The model is linear and homogeneous in (s, a), so its solution is the direction that a singular
    value decomposition finds nearest to null; it is unique if the next direction is far from null.
    """
    t, n = np.atleast_2d(np.asarray(seconds, float)), np.asarray(counts, float)
    if n.shape[:2] != t.shape or n.ndim != 3:
        raise InputError(f"times of {t.shape} and counts of {n.shape}; expected (runs, ranks, kinds)")
    if not np.all(np.isfinite(t) & (t > 0)) or np.any(n < 0) or np.any(n.sum(axis=2) == 0):
        raise InputError("expected positive times, and some cells on every rank")
    runs, ranks, kinds = n.shape
    rates = n / t[:, :, None]  # rows: s_p - sum_k a_k n_rpk / t_rp = 0
    scale_a = rates.mean(axis=(0, 1))
    if np.any(scale_a == 0):
        return None
    rows = np.zeros((runs, ranks, ranks + kinds))
    rows[:, np.arange(ranks), np.arange(ranks)] = 1.0
    rows[:, :, ranks:] = -rates / scale_a
    _, sigma, v = np.linalg.svd(rows.reshape(runs * ranks, -1))
    unknowns = ranks + kinds
    if len(sigma) < unknowns - 1 or sigma[unknowns - 2] < SEPARABLE * sigma[0]:
        return None
    if len(sigma) == unknowns and sigma[-1] > NOISE * sigma[-2]:  # the model's error drowns the direction
        return None
    answer = v[-1] * np.sign(v[-1].sum())
    s, a = answer[:ranks], answer[ranks:] / scale_a
    if np.any(s <= 0) or np.any(a <= 0):
        return None
    residual = float(np.sqrt(np.mean((n @ a / (t * s) - 1) ** 2)))
    return Factors(s / s.mean(), a / a[0], residual)
