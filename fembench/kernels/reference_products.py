"""The plain twins of the matrix products: q = A d of a rank's own, unassembled stiffness.

Every product is bound to d and q (3 n_active,) and works in two ranges, `interface()` then `interior()`;
fused ones return that range's part of d . (A d).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fembench.kernels.reference_assembly import Modulus, stiffness

Vector = NDArray[np.float64]


def _bsr(indptr: Any, columns: Any, values: Any, n: int) -> Any:
    from scipy.sparse import bsr_matrix  # only where nothing was compiled

    return bsr_matrix((values, columns, indptr), shape=(3 * n, 3 * n)) if n else np.zeros((0, 0))


class SymProduct:
    """Every pair of nodes stored once (pattern(upper=True)); fused."""

    def __init__(
        self, indptr: Any, rows: Any, columns: Any, values: Vector, n_interior: int, d: Vector, q: Vector
    ) -> None:
        self.n, self.split, self.d, self.q = rows.size, rows.size - n_interior, d, q
        self.i = np.repeat(rows.astype(np.int64), np.diff(indptr))
        self.j, self.values, self.indptr = columns.astype(np.int64), values, indptr
        self.rows = rows.astype(np.int64)

    def _range(self, begin: int, end: int) -> float:
        at = slice(self.indptr[begin], self.indptr[end])
        i, j, a = self.i[at], self.j[at], self.values[at]
        d, q = self.d.reshape(-1, 3), self.q.reshape(-1, 3)
        np.add.at(q, i, np.einsum("kij,kj->ki", a, d[j]))
        off = i != j
        np.add.at(q, j[off], np.einsum("kji,kj->ki", a[off], d[i[off]]))
        nodes = self.rows[begin:end]
        return float(np.sum(d[nodes] * q[nodes]))

    def interface(self) -> float:
        """Zero q, then the rows of interface nodes."""
        self.q[:] = 0
        return self._range(0, self.split)

    def interior(self) -> float:
        """The rows of interior nodes."""
        return self._range(self.split, self.n)


class _Rows:
    """Products whose rows are independent: `A` has 3 n_active rows."""

    fused = False

    def __init__(self, A: Any, n_interior: int, d: Vector, q: Vector) -> None:
        m = 3 * n_interior
        self.parts = (A[:m], A[m:])
        self.d, self.q = d, (q[:m], q[m:])
        self.ranges = (slice(0, m), slice(m, None))

    def _range(self, k: int) -> float | None:
        if self.q[k].size:
            self.q[k][:] = self.parts[k] @ self.d
        return float(self.d[self.ranges[k]] @ self.q[k]) if self.fused else None

    def interface(self) -> float | None:
        """Rows of interface nodes."""
        return self._range(1)

    def interior(self) -> float | None:
        """Rows of interior nodes."""
        return self._range(0)


class BsrProduct(_Rows):
    """Full 3x3 blocks; fused."""

    fused = True

    def __init__(
        self, indptr: Any, columns: Any, values: Vector, n_interior: int, d: Vector, q: Vector
    ) -> None:
        n = indptr.size - 1
        A = _bsr(indptr, columns, values, n)
        super().__init__(A.tocsr() if n else A, n_interior, d, q)


class CsrProduct(_Rows):
    """Scalar compressed rows, scipy's own product; not fused."""

    def __init__(
        self, indptr: Any, columns: Any, values: Vector, n_interior: int, d: Vector, q: Vector
    ) -> None:
        from scipy.sparse import csr_matrix

        A = csr_matrix((values, columns, indptr), shape=(d.size, d.size)) if d.size else np.zeros((0, 0))
        super().__init__(A, n_interior, d, q)


class DenseProduct(_Rows):
    """All n x n entries, zero or not; not fused."""

    def __init__(self, values: Vector, n_interior: int, d: Vector, q: Vector) -> None:
        super().__init__(values.reshape(d.size, d.size), n_interior, d, q)


class EbeProduct:
    """Cell by cell; cells: the first n_first touch the interface; fixed (k,): dofs where q = d. Fused."""

    def __init__(
        self,
        x: Vector,
        cells: NDArray[np.int32],
        n_first: int,
        lam: Modulus,
        mu: Modulus,
        fixed: NDArray[np.int32],
        n_interior: int,
        d: Vector,
        q: Vector,
    ) -> None:
        self.x, self.cells, self.n_first = x, cells, n_first
        self.lam, self.mu = (np.broadcast_to(modulus, len(cells)) for modulus in (lam, mu))
        self.fixed, self.m, self.d, self.q = fixed, 3 * n_interior, d, q

    def _range(self, which: slice, dofs: slice) -> float:
        cells = self.cells[which]
        u = np.zeros((self.x.shape[0], 3))
        u[: self.d.size // 3] = self.d.reshape(-1, 3)
        ke = stiffness(self.x, cells, self.lam[which], self.mu[which])
        f = np.einsum("nij,nj->ni", ke, u[cells].reshape(ke.shape[:2])).reshape(-1, 3)
        total = np.zeros_like(u)
        np.add.at(total, cells.reshape(-1), f)
        self.q += total[: self.d.size // 3].reshape(-1)
        mine = self.fixed[(self.fixed >= dofs.start) & (self.fixed < dofs.stop)]
        self.q[mine] = self.d[mine]
        return float(self.d[dofs] @ self.q[dofs])

    def interface(self) -> float:
        """Zero q, then the cells that touch the interface."""
        self.q[:] = 0
        return self._range(slice(self.n_first), slice(self.m, self.q.size))

    def interior(self) -> float:
        """The other cells."""
        return self._range(slice(self.n_first, None), slice(0, self.m))
