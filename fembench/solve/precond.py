"""Preconditioners M^-1: symmetric, positive definite, consistent on shared dofs.

    none          M = I
    jacobi        the diagonal of the assembled A
    block-jacobi  its 3x3 diagonal blocks, one per node
    chebyshev     a Chebyshev polynomial in D^-1 A (Saad, Iterative Methods, 2nd ed., algorithm 12.1):
                  products and neighbour sums only, no all-reduce
    two-level     the diagonal and the rigid-body modes of every part (coarse.py): one all-gather
    multigrid     a V-cycle on background grids (multigrid.py)

`inverse`, where it is not None, is what kernels.CGVectors needs to fold M into its own
passes. The cost of each is declared in methods/preconditioners.py, which also names
the function that builds it.
apply() runs inside the phase cg.precond, and leaves that phase for the
interface's own where it communicates.

The largest eigenvalue of D^-1 A comes from the Lanczos matrix of a few steps. Source: Saad,
section 6.7.3: alpha and beta of CG are the entries of the Lanczos tridiagonal matrix, whose
eigenvalues approach those of D^-1 A from inside, extremes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fembench.base.arrays import F64
from fembench.base.errors import BreakdownError
from fembench.kernels.backend import kernels, kernels_of
from fembench.methods.lookup import load, precond_of
from fembench.methods.preconditioners import CHEBYSHEV_DEGREE
from fembench.methods.steps import NO_WORK
from fembench.records.phases import PRECOND
from fembench.solve.iterate import Preconditioner
from fembench.timing.tracer import NullTracer, Stamps

if TYPE_CHECKING:
    from fembench.ranks.interface import Interface
    from fembench.ranks.subdomain import Subdomain
    from fembench.solve.operators import Operator, Product


def largest_eigenvalue(
    product: Product, interface: Interface, inverse: F64, x: F64, r: F64, d: F64, q: F64, steps: int = 12
) -> float:
    """A lower bound, close after 12 steps. Collective.

    product makes q = A d; inverse is D^-1, as kernels.CGVectors takes it; r (n,) is a
    consistent start; x, d and q hold finite numbers. All four are overwritten. The search
    ends where a direction stores no energy. 1 if A is zero.
    """
    vectors = kernels_of(x).CGVectors(x, r, d, q, x, interface.weights, inverse)
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
    a = np.array(alphas)
    b = np.array(betas[: len(alphas) - 1])
    T = np.diag(1 / a)
    T[1:, 1:] += np.diag(b / a[:-1])
    off = np.sqrt(b) / a[:-1]
    return T + np.diag(off, 1) + np.diag(off, -1)


def chebyshev_coefficients(smallest: float, largest: float, degree: int) -> list[tuple[float, float]]:
    """(keep, gain) of each step d = keep d + gain D^-1 r (Saad, algorithm 12.1)."""
    theta = (largest + smallest) / 2
    delta = (largest - smallest) / 2
    rho = delta / theta
    steps = [(0.0, 1 / theta)]
    for _ in range(degree - 1):
        rho, old = 1 / (2 * theta / delta - rho), rho
        steps.append((rho * old, 2 * rho / delta))
    return steps


RATIO = 40.0  # largest over smallest eigenvalue of the polynomial's interval


class Identity:
    """M = I."""

    identity = True
    inverse: F64 | None = None
    extra = NO_WORK

    def apply(self, r: F64, z: F64) -> None:
        """z = r"""
        z[:] = r


class Diagonal:
    """Jacobi: `inverse` (n,) reciprocals, or (n/3, 6) inverse
    blocks as xx yy zz xy yz zx."""

    identity = False
    extra = NO_WORK

    def __init__(self, inverse: F64) -> None:
        self.inverse: F64 | None = inverse
        self._bound: tuple[F64, F64] | None = None

    def apply(self, r: F64, z: F64) -> None:
        """z = D^-1 r"""
        if self._bound is None or self._bound[0] is not r or self._bound[1] is not z:
            assert self.inverse is not None
            self._bound = (r, z)
            self._scale = kernels.Scale(self.inverse, r, z)
        self._scale.run()


class ChebyshevPreconditioner:
    """z = p(D^-1 A) D^-1 r, p the Chebyshev polynomial of degree CHEBYSHEV_DEGREE - 1 on
    [largest / RATIO, largest]. Collective."""

    identity = False
    inverse: F64 | None = None  # nothing to fold in
    extra = NO_WORK

    def __init__(self, A: Operator, interface: Interface, sub: Subdomain, tracer: Stamps) -> None:
        n = interface.n_dofs
        self._diagonal = inverse_diagonal(A, interface)
        self._kernels = A.kernels
        x, self._r, self._d, self._q = (A.kernels.empty(n) for _ in range(4))
        for v in (x, self._d, self._q):
            v[:] = 0.0
        self._product = A.bind(self._d, self._q)
        self._update = interface.bind(self._q, tracer)
        self._tracer = tracer
        self._r[:] = hashed(sub.global_nodes[: sub.n_active])
        vectors = x, self._r, self._d, self._q
        self.largest = 1.1 * largest_eigenvalue(self._product, interface, self._diagonal, *vectors)
        self._coefficients = chebyshev_coefficients(self.largest / RATIO, self.largest, CHEBYSHEV_DEGREE)
        self._bound: F64 | None = None

    def apply(self, r: F64, z: F64) -> None:
        """Overwrite z. Collective over neighbours."""
        if self._bound is not z:
            self._bound = z
            self._step = self._kernels.Chebyshev(z, self._r, self._d, self._q, self._diagonal)
        begin, end = self._tracer.begin, self._tracer.end
        (_, gain), *steps = self._coefficients
        self._r[:] = r
        self._step.start(gain)
        for keep, gain in steps:
            self._product.interface()
            end(PRECOND)
            self._update.start()
            begin(PRECOND)
            self._product.interior()
            end(PRECOND)
            self._update.finish()
            begin(PRECOND)
            self._step.run(keep, gain)


def inverse_diagonal(A: Operator, interface: Interface) -> F64:
    """(n,) reciprocals of the assembled diagonal. Collective over neighbours."""
    diagonal = kernels.empty(interface.n_dofs)
    diagonal[:] = A.diagonal()
    interface.update(diagonal)
    if not (diagonal > 0).all():
        raise BreakdownError("the diagonal of A has an entry that is not positive: is the mesh inverted?")
    return np.divide(1.0, diagonal, out=diagonal)


def inverse_blocks(A: Operator, interface: Interface) -> F64:
    """(n/3, 6) inverses of the assembled 3x3 diagonal blocks. Collective over neighbours."""
    inverse = kernels.empty((interface.n_dofs // 3, 6))
    inverse[:] = inverted(summed_blocks(A.block_diagonal(), interface))
    return inverse


def summed_blocks(blocks: F64, interface: Interface) -> F64:
    """Diagonal blocks (n, 3, 3), summed in place over their sharers. Collective."""
    for c in range(3):
        column = np.ascontiguousarray(blocks[:, :, c]).reshape(-1)
        blocks[:, :, c] = interface.update(column).reshape(-1, 3)
    return blocks


def inverted(blocks: F64) -> F64:
    """(n, 6) inverses of blocks (n, 3, 3), as xx yy zz xy yz zx. Raises BreakdownError."""
    inverse = np.linalg.inv(blocks)[:, [0, 1, 2, 0, 1, 2], [0, 1, 2, 1, 2, 0]]
    if not (inverse[:, :3] > 0).all():
        raise BreakdownError("a diagonal block of A is not positive definite: is the mesh inverted?")
    return np.ascontiguousarray(inverse)


def reciprocals(blocks: F64) -> F64:
    """(3 n,) reciprocals of the diagonal of blocks (n, 3, 3). Raises BreakdownError."""
    entries = blocks.diagonal(axis1=1, axis2=2).reshape(-1)
    if not (entries > 0).all():
        raise BreakdownError("the diagonal of A has an entry that is not positive: is the mesh inverted?")
    return 1.0 / entries


def make_preconditioner(
    name: str, A: Operator, interface: Interface, sub: Subdomain, tracer: Stamps | None = None
) -> Preconditioner:
    """The preconditioner of that name. Collective. Raises InputError for an unknown one."""
    return load(precond_of(name, "own").build)(A, interface, sub, tracer or NullTracer())


def identity(A: Operator, interface: Interface, sub: Subdomain, tracer: Stamps) -> Identity:
    """No preconditioner."""
    return Identity()


def jacobi(A: Operator, interface: Interface, sub: Subdomain, tracer: Stamps) -> Diagonal:
    """The inverse diagonal. Collective over neighbours."""
    return Diagonal(inverse_diagonal(A, interface))


def block_jacobi(A: Operator, interface: Interface, sub: Subdomain, tracer: Stamps) -> Diagonal:
    """The inverse 3x3 diagonal blocks. Collective over neighbours."""
    return Diagonal(inverse_blocks(A, interface))
