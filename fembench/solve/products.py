"""Products rebuilt from a matrix's arrays, so that the matrix can move to another rank.

storage   arrays, in this order
sym       indptr, rows, columns, values
bsr       indptr, columns, values
csr       indptr, columns, entries
dense     A
ebe       x, cells (interface cells first), fixed dofs, (number of interface cells, lam, mu)
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fembench.kernels.backend import kernels
from fembench.methods.lookup import load, storage_of

F64 = NDArray[np.float64]
Arrays = tuple[NDArray, ...]


class Product(Protocol):
    """q = A d, bound to its vectors. Call interface() first, then interior()."""

    def interface(self) -> float | None:
        """Complete this rank's q on the interface; returns its part of d . q if fused."""

    def interior(self) -> float | None:
        """Complete q in the interior; returns its part of d . q if fused."""


Bind = Callable[[F64, F64], Product]  # (d, q), each (3 n_active,), made with kernels.empty


def bind_arrays(storage: str, arrays: Arrays, n_interior: int) -> Bind:
    """A function that binds the product to its vectors; n_interior counts nodes."""
    make = load(storage_of(storage).product)
    return lambda d, q: make(*arrays, n_interior, d, q)


def ebe_product(
    x: F64, cells: NDArray, fixed: NDArray, numbers: F64, n_interior: int, d: F64, q: F64
) -> Product:
    """The element-by-element kernel from its arrays; numbers: interface cells, lam, mu."""
    n_first, lam, mu = numbers
    return kernels.EbeProduct(x, cells, int(n_first), float(lam), float(mu), fixed, n_interior, d, q)
