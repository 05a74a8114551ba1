"""The largest eigenvalue of D^-1 A, from the Lanczos matrix of a few steps.

Source: Saad, Iterative Methods, 2nd ed., section 6.7.3: alpha and beta of CG are the
entries of the Lanczos tridiagonal matrix, whose eigenvalues approach those of D^-1 A
from inside, extremes first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fembench.base.arrays import F64

if TYPE_CHECKING:
    from fembench.ranks.interface import Interface


def largest_eigenvalue(
    product: Callable[[F64], F64],
    precondition: Callable[[F64], F64],
    interface: Interface,
    start: F64,
    steps: int = 12,
) -> float:
    """A lower bound, close after 12 steps. Collective.

    product(d) is A d and precondition(r) is D^-1 r, summed, as new arrays; start (n,)
    is consistent. The search ends where a direction stores no energy. 1 if A is zero.
    """
    r, d = start.copy(), precondition(start)
    alphas: list[float] = []
    betas: list[float] = []
    gamma = first = interface.dot(r, d)
    while len(alphas) < steps and gamma > 1e-20 * first:
        q = product(d)
        energy = interface.dot(d, q)
        if energy <= 1e-20 * first:
            break
        alphas.append(gamma / energy)
        r -= alphas[-1] * q
        z = precondition(r)
        gamma, old = interface.dot(r, z), gamma
        betas.append(gamma / old)
        d *= betas[-1]
        d += z
    return float(np.linalg.eigvalsh(_tridiagonal(alphas, betas))[-1]) if alphas else 1.0


def hashed(numbers: NDArray[np.integer]) -> F64:
    """(3 n,) noise in [-1, 1) by a node's number: alike on all sharers and parts.

    The mixing function is that of splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
    """
    dofs = np.int64(3) * numbers[:, None] + np.arange(3)
    z = dofs.reshape(-1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0


def _tridiagonal(alphas: list[float], betas: list[float]) -> F64:
    """(k, k) Lanczos matrix of k CG steps."""
    a, b = np.array(alphas), np.array(betas[: len(alphas) - 1])
    T = np.diag(1 / a)
    T[1:, 1:] += np.diag(b / a[:-1])
    off = np.sqrt(b) / a[:-1]
    return T + np.diag(off, 1) + np.diag(off, -1)


def chebyshev_coefficients(smallest: float, largest: float, degree: int) -> list[tuple[float, float]]:
    """(keep, gain) of each step d = keep d + gain D^-1 r (Saad, algorithm 12.1)."""
    theta, delta = (largest + smallest) / 2, (largest - smallest) / 2
    rho = delta / theta
    steps = [(0.0, 1 / theta)]
    for _ in range(degree - 1):
        rho, old = 1 / (2 * theta / delta - rho), rho
        steps.append((rho * old, 2 * rho / delta))
    return steps
