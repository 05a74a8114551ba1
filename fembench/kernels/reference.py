"""The plain twin of every compiled kernel: same names, same signatures, numpy instead of C.

Tests compare the compiled kernels with these, which also serve, slowly, if nothing was compiled.
A bound kernel is an object made from its arrays; its methods take scalars only. Products work in two
ranges: `interface()` first (q of the interface final for this rank), then `interior()`. The classes of
the matrix products live in reference_products.py, assembly in reference_assembly.py, the recurrences of the
conjugate-gradient variants in reference_variants.py.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fembench.kernels.reference_assembly import (
    assemble,
    cell_order,
    count_blocks,
    incidence,
    pattern,
    reorder,
    stiffness,
)
from fembench.kernels.reference_blocks import Blocks, Gather, SharedSum
from fembench.kernels.reference_multigrid import Transfer, galerkin, pieces
from fembench.kernels.reference_operations import OPERATIONS, operation
from fembench.kernels.reference_precond import Chebyshev, RigidModes, Scale
from fembench.kernels.reference_products import BsrProduct, CsrProduct, DenseProduct, EbeProduct, SymProduct
from fembench.kernels.reference_variants import Pipelined, SingleReduction, scaled

__all__ = [
    "ISA",
    "NAME",
    "OPERATIONS",
    "Blocks",
    "BsrProduct",
    "CGVectors",
    "Chebyshev",
    "CsrProduct",
    "DenseProduct",
    "Dot",
    "EbeProduct",
    "Gather",
    "NeighbourSum",
    "Pack",
    "Pipelined",
    "RigidModes",
    "Scale",
    "SharedSum",
    "SingleReduction",
    "Stream",
    "SymProduct",
    "Transfer",
    "assemble",
    "cell_order",
    "count_blocks",
    "empty",
    "galerkin",
    "incidence",
    "operation",
    "pattern",
    "pieces",
    "reorder",
    "stiffness",
    "zeros",
]
NAME = "reference"
ISA = "numpy"
Vector = NDArray[np.float64]
Index = NDArray[np.int32]


def empty(shape: Any, dtype: DTypeLike = "float64") -> NDArray[Any]:
    """An uninitialised array."""
    return np.empty(shape, dtype)


def zeros(shape: Any, dtype: DTypeLike = "float64") -> NDArray[Any]:
    """An array of zeros."""
    return np.zeros(shape, dtype)


class Dot:
    """a . b over n entries, the last `weights.size` of them weighted."""

    def __init__(self, a: Vector, b: Vector, weights: Vector) -> None:
        self.a, self.b, self.w, self.m = a, b, weights, a.size - weights.size

    def run(self) -> float:
        """The inner product."""
        inner = self.a[: self.m] @ self.b[: self.m]
        return float(inner + np.sum(self.a[self.m :] * self.b[self.m :] * self.w))


class CGVectors:
    """The vector work of one conjugate-gradient iteration.

    x r d q z (n,); weights (n_interface,) = 1 / multiplicity of the last entries. `inverse` folds a
    Jacobi preconditioner in: (n,) reciprocals, or (n/3, 6) inverse blocks (xx yy zz xy yz zx).
    """

    def __init__(
        self,
        x: Vector,
        r: Vector,
        d: Vector,
        q: Vector,
        z: Vector,
        weights: Vector,
        inverse: Vector | None = None,
    ) -> None:
        self.x, self.r, self.d, self.q, self.z = x, r, d, q, z
        self.inverse = inverse
        self.dq, self.rr, self.rz = Dot(d, q, weights), Dot(r, r, weights), Dot(r, z, weights)
        self.weights = weights

    def dot_dq(self) -> float:
        """d . q"""
        return self.dq.run()

    def dot_rz(self) -> float:
        """r . z"""
        return self.rz.run()

    def step(self, alpha: float) -> float:
        """x += alpha d; r -= alpha q; returns r . r."""
        self.x += alpha * self.d
        self.r -= alpha * self.q
        return self.rr.run()

    def step_jacobi(self, alpha: float) -> tuple[float, float]:
        """Like step, but returns r . r and r . D^-1 r."""
        rr = self.step(alpha)
        return rr, Dot(self.r, self._precondition(), self.weights).run()

    def direction(self, beta: float) -> None:
        """d = z + beta d, where z = D^-1 r if an inverse diagonal was given."""
        z = self.z if self.inverse is None else self._precondition()
        self.d *= beta
        self.d += z

    def _precondition(self) -> Vector:
        if self.inverse is None:
            raise ValueError("step_jacobi: made without an inverse diagonal")
        return scaled(self.inverse, self.r)


class Stream:
    """The roof: `read()` one array of n doubles. Only that array is allocated."""

    def __init__(self, n: int) -> None:
        self.b = np.zeros(n)

    def read(self) -> float:
        """The sum of the array."""
        return float(self.b.sum())


class Triad:
    """The roof: `run(s)` a = b + s c over three arrays of n doubles."""

    def __init__(self, n: int) -> None:
        self.a, self.b, self.c = np.zeros(n), np.zeros(n), np.zeros(n)

    def run(self, s: float) -> None:
        """a = b + s c"""
        np.multiply(self.c, s, out=self.a)
        self.a += self.b


class Pack:
    """buffer = v at index: of dofs, or of nodes where the buffer is three times as long."""

    def __init__(self, v: Vector, index: Index, buffer: Vector) -> None:
        if buffer.size not in (index.size, 3 * index.size):
            raise ValueError(f"index: {index.size} indices do not fit {buffer.size} values")
        wide = index.size and buffer.size == 3 * index.size
        dofs = (3 * index.astype(np.int64)[:, None] + np.arange(3)).reshape(-1) if wide else index
        if dofs.size and (dofs.min() < 0 or dofs.max() >= v.size):
            raise ValueError(f"index: an index outside the vector of {v.size}")
        self.v, self.dofs, self.buffer = v, dofs, buffer

    def run(self) -> None:
        """Gather."""
        self.buffer[:] = self.v[self.dofs]


class NeighbourSum:
    """Interface part of v = sum over all sharers in ascending order of rank, this rank's own at its place.

    indices (as in Pack) and buffers are by ascending rank; the first n_below are of ranks below this one.
    """

    def __init__(
        self, v: Vector, first_dof: int, n_below: int, indices: Sequence[Index], buffers: Sequence[Vector]
    ) -> None:
        if not 0 <= first_dof <= v.size or not 0 <= n_below <= len(indices) == len(buffers):
            raise ValueError("first_dof, n_below: outside the vector or the list of neighbours")
        self.v, self.first = v, first_dof
        parts = [Pack(v, index, buffer) for index, buffer in zip(indices, buffers)]
        self.below, self.above = parts[:n_below], parts[n_below:]

    def run(self) -> None:
        """Add the messages."""
        own = self.v[self.first :].copy()
        self.v[self.first :] = 0
        for part in self.below:
            self.v[part.dofs] += part.buffer
        self.v[self.first :] += own
        for part in self.above:
            self.v[part.dofs] += part.buffer
