"""The largest eigenvalue of D^-1 A, from the Lanczos matrix of a few conjugate-gradient steps.

Source: Saad, Iterative Methods, 2nd ed., section 6.7.3: alpha and beta of CG are the entries of the
Lanczos tridiagonal matrix, whose eigenvalues approach those of D^-1 A from inside, extremes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fembench.kernels.backend import kernels

if TYPE_CHECKING:
    from fembench.ranks.interface import Interface
    from fembench.solve.operators import Operator

F64 = NDArray[np.float64]


def largest_eigenvalue(A: Operator, interface: Interface, inverse: F64, steps: int = 12) -> float:
    """A lower bound, close after 12 steps; inverse (n,) of the assembled diagonal. Collective."""
    r, d = _start(interface), kernels.empty(interface.n_dofs)
    d[:] = inverse * r
    alphas: list[float] = []
    betas: list[float] = []
    gamma = first = interface.dot(r, d)
    while len(alphas) < steps and gamma > 1e-20 * first:
        q = interface.update(A.apply(d))
        alphas.append(gamma / interface.dot(d, q))
        r -= alphas[-1] * q
        z = inverse * r
        gamma, old = interface.dot(r, z), gamma
        betas.append(gamma / old)
        d *= betas[-1]
        d += z
    return float(np.linalg.eigvalsh(_tridiagonal(alphas, betas))[-1])


def _start(interface: Interface) -> F64:
    """A rough vector, equal on all sharers of a dof: noise by rank, summed over the sharers."""
    v = kernels.empty(interface.n_dofs)
    v[:] = np.random.default_rng(interface.comm.rank).standard_normal(v.size)
    return interface.update(v)


def _tridiagonal(alphas: list[float], betas: list[float]) -> F64:
    """(k, k) Lanczos matrix of k CG steps."""
    a, b = np.array(alphas), np.array(betas[: len(alphas) - 1])
    T = np.diag(1 / a)
    T[1:, 1:] += np.diag(b / a[:-1])
    off = np.sqrt(b) / a[:-1]
    return T + np.diag(off, 1) + np.diag(off, -1)
