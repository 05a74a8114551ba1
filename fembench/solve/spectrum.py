"""The largest eigenvalue of D^-1 A, from the Lanczos matrix of a few steps.

Source: Saad, Iterative Methods, 2nd ed., section 6.7.3: alpha and beta of CG are the
entries of the Lanczos tridiagonal matrix, whose eigenvalues approach those of D^-1 A
from inside, extremes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fembench.base.arrays import F64
from fembench.kernels.backend import kernels

if TYPE_CHECKING:
    from fembench.ranks.interface import Interface
    from fembench.solve.operators import Product


def largest_eigenvalue(
    product: Product, interface: Interface, inverse: F64, x: F64, r: F64, d: F64, q: F64, steps: int = 12
) -> float:
    """A lower bound, close after 12 steps. Collective.

    product makes q = A d; inverse is D^-1, as kernels.CGVectors takes it; r (n,) is a
    consistent start; x, d and q hold finite numbers. All four are overwritten. The search
    ends where a direction stores no energy. 1 if A is zero.
    """
    vectors = kernels.CGVectors(x, r, d, q, x, interface.weights, inverse)
    alphas: list[float] = []
    betas: list[float] = []
    gamma = first = interface.total(vectors.step_jacobi(0.0)[1])
    vectors.direction(0.0)
    while len(alphas) < steps and gamma > 1e-20 * first:
        product.interface()
        product.interior()
        interface.update(q)
        energy = interface.total(vectors.dot_dq())
        if energy <= 1e-20 * first:
            break
        alphas.append(gamma / energy)
        gamma, old = interface.total(vectors.step_jacobi(alphas[-1])[1]), gamma
        betas.append(gamma / old)
        vectors.direction(betas[-1])
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
