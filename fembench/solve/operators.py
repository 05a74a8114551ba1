"""The operator A of one rank: the stiffness of its own cells, in one of the own storages.

    dense  all (3 n)^2 entries                                   reference format
    csr    scalar compressed rows, scipy's layout                reference format
    bsr    full 3x3 blocks                                       fused with d . q
    sym    3x3 blocks, every pair of nodes once                  fused with d . q
    ebe    element by element, no matrix                         fused with d . q

Rows and columns of restrained dofs are zero, with a diagonal of one. Nothing
here communicates: shared rows are partial, and their sum over the sharers is the
row of the assembled matrix. methods/storages.py declares what each storage costs
and names its builder below.

Products rebuilt from a matrix's arrays, so that the matrix can move to another rank.

storage   arrays, in this order
sym       indptr, rows, columns, values
bsr       indptr, columns, values
csr       indptr, columns, entries
dense     A
ebe       x, cells (interface cells first), fixed dofs, number of the former, (lam, mu) of all or each"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.fem.materials import Modulus, part_of
from fembench.fem.shapes import HEX8, HEX_CORNERS
from fembench.kernels.backend import kernels
from fembench.methods.lookup import load, storage_of

if TYPE_CHECKING:
    from fembench.ranks.subdomain import Subdomain

Arrays = tuple[NDArray, ...]


class Product(Protocol):
    """q = A d, bound to its vectors. Call interface() first, then interior()."""

    def interface(self) -> float | None:
        """Complete this rank's q on the interface; returns its part of d . q if fused."""

    def interior(self) -> float | None:
        """Complete q in the interior; returns its part of d . q if fused."""


class VectorKernels(Protocol):
    """What makes and updates vectors: the compiled kernels, or those of a device."""

    @property
    def empty(self) -> Callable[[int], Any]:
        """A vector of n entries."""

    @property
    def CGVectors(self) -> Callable[..., Any]:
        """The vector work of an iteration."""

    @property
    def Chebyshev(self) -> Callable[..., Any]:
        """Steps of a polynomial in D^-1 A."""


class RankDevice(VectorKernels, Protocol):
    """The device of a rank; device/device.py adds the compiled kernels' names."""

    @property
    def said(self) -> tuple[Any, ...]:
        """Its name, bytes of memory, driver, compiler and place, as in DeviceFacts."""

    def matrix(self, indptr: NDArray, columns: NDArray, values: F64, n_interior: int) -> Any:
        """Full blocks in its memory: `n_bytes`, and `bind` as of an operator."""

    @property
    def elements(self) -> Callable[..., Any]:
        """Cells in its memory, from which a product follows: `n_bytes` and `bind`."""

    def roof(self, n_bytes: int) -> float:
        """Bytes per second of its memory, through `n_bytes`: the better of read and triad."""

    def triad(self, n_bytes: int, seconds: float) -> float:
        """Bytes per second of a = b + s c, with arrays of `n_bytes` in all."""


Bind = Callable[[F64, F64], Product]  # (d, q), each (3 n_active,), made with kernels.empty


def bind_arrays(storage: str, arrays: Arrays, n_interior: int) -> Bind:
    """A function that binds the product to its vectors; n_interior counts nodes."""
    make = load(storage_of(storage).product)
    return lambda d, q: make(*arrays, n_interior, d, q)


def ebe_product(
    x: F64, cells: NDArray, fixed: NDArray, n_first: NDArray, lame: F64, n_interior: int, d: F64, q: F64
) -> Product:
    """The element-by-element kernel from its arrays."""
    lam, mu = lame if lame.shape[1] > 1 else lame[:, 0].tolist()
    return kernels.EbeProduct(x, cells, int(n_first[0]), lam, mu, fixed, n_interior, d, q)


class Operator(Struct, frozen=True):
    """One rank's A, with the bytes and flops of one product."""

    storage: str
    lam: Modulus  # pascal
    mu: Modulus  # pascal
    n_interior: int  # nodes
    n_active: int  # nodes
    matrix_bytes: int  # of the arrays that one product reads, without vectors
    flops: int  # useful ones of a product: 2 per entry, mirrored entries included
    bind: Bind
    block_diagonal: Callable[[], F64]  # (n_active, 3, 3), unsummed on shared dofs; a new array
    arrays: Arrays = ()  # that the product reads, in the order of products.py
    kernels: VectorKernels = kernels  # where its vectors lie: the compiled ones, or those of a device

    @property
    def bytes_per_product(self) -> int:
        """Matrix, d read, q read and written."""
        return self.matrix_bytes + 3 * 24 * self.n_active

    def diagonal(self) -> F64:
        """(3 n_active,), unsummed on shared dofs."""
        return np.ascontiguousarray(np.einsum("nii->ni", self.block_diagonal())).reshape(-1)

    def apply(self, x: F64) -> F64:
        """A x as a new array, unsummed on shared dofs."""
        d = self.kernels.empty(x.size)
        q = self.kernels.empty(x.size)
        d[:] = x
        product = self.bind(d, q)
        product.interface()
        product.interior()
        return np.asarray(q)


def build_operator(storage: str, sub: Subdomain, lam: Modulus, mu: Modulus) -> Operator:
    """Assemble A of a rank's cells; lam, mu in Pa. Raises InputError for an unknown storage."""
    return load(storage_of(storage, "own").build)(sub, lam, mu)


def assembled(
    sub: Subdomain, lam: Modulus, mu: Modulus, *, upper: bool
) -> tuple[NDArray, NDArray, NDArray, F64]:
    """(indptr, rows, columns, values (n_blocks, 3, 3)); see kernels.pattern."""
    where = kernels.Incidence(sub.cells, len(sub.x))
    indptr, rows, columns = kernels.pattern(sub.cells, sub.n_interior, sub.n_active, upper, where)
    values = kernels.assemble(
        sub.x, sub.cells, lam, mu, sub.n_interior, upper, sub.fixed, indptr, rows, columns, where
    )
    return indptr, rows, columns, values


def _operator(
    storage: str,
    sub: Subdomain,
    lame: tuple[Modulus, Modulus],
    arrays: Arrays,
    flops: int,
    block_diagonal: Callable[[], F64],
    matrix_bytes: int | None = None,
) -> Operator:
    """The operator on its arrays; `lame` is (lam, mu), `matrix_bytes` by default theirs."""
    return Operator(
        storage=storage,
        lam=lame[0],
        mu=lame[1],
        n_interior=sub.n_interior,
        n_active=sub.n_active,
        matrix_bytes=sum(a.nbytes for a in arrays) if matrix_bytes is None else matrix_bytes,
        flops=flops,
        bind=bind_arrays(storage, arrays, sub.n_interior),
        block_diagonal=block_diagonal,
        arrays=arrays,
    )


def symmetric(sub: Subdomain, lam: Modulus, mu: Modulus) -> Operator:
    indptr, rows, columns, values = assembled(sub, lam, mu, upper=True)
    arrays = (indptr, rows, columns, values)
    flops = 18 * (2 * len(columns) - sub.n_active)
    return _operator("sym", sub, (lam, mu), arrays, flops, lambda: diagonal_of(arrays))


def diagonal_of(arrays: tuple[NDArray, NDArray, NDArray, F64]) -> F64:
    """(n, 3, 3) the diagonal blocks of arrays of storage sym, as a new array."""
    indptr, rows, _, values = arrays
    blocks = np.empty((len(rows), 3, 3))
    blocks[rows] = values[indptr[:-1]]  # the diagonal block comes first in its row
    return blocks


def blocked(sub: Subdomain, lam: Modulus, mu: Modulus) -> Operator:
    indptr, _, columns, values = assembled(sub, lam, mu, upper=False)
    return _operator(
        "bsr",
        sub,
        (lam, mu),
        (indptr, columns, values),
        18 * len(columns),
        lambda: values[_own_blocks(indptr, columns)],
    )


def on_device(sub: Subdomain, lam: Modulus, mu: Modulus, device: RankDevice) -> Operator:
    """Full blocks on a device; symmetric ones would add to a row in any order."""
    indptr, _, columns, values = assembled(sub, lam, mu, upper=False)
    diagonal = values[_own_blocks(indptr, columns)]
    matrix = device.matrix(indptr, columns, values, sub.n_interior)
    return Operator(
        storage="bsr",
        lam=lam,
        mu=mu,
        n_interior=sub.n_interior,
        n_active=sub.n_active,
        matrix_bytes=matrix.n_bytes,
        flops=18 * len(columns),
        bind=matrix.bind,
        block_diagonal=diagonal.copy,
        kernels=device,
    )


def _own_blocks(indptr: NDArray, columns: NDArray) -> NDArray:
    """Index of each row's diagonal block in a full pattern."""
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    return np.flatnonzero(rows == columns)


def scalar_rows(sub: Subdomain, lam: Modulus, mu: Modulus) -> Operator:
    indptr, _, columns, values = assembled(sub, lam, mu, upper=False)
    diagonal = values[_own_blocks(indptr, columns)]
    arrays = _scalar(indptr, columns, values)
    return _operator("csr", sub, (lam, mu), arrays, 2 * arrays[2].size, diagonal.copy)


def _scalar(indptr: NDArray, columns: NDArray, values: F64) -> tuple[NDArray, NDArray, F64]:
    """Blocks as scalar compressed rows (indptr int64, columns int32, entries), ascending."""
    length = np.diff(indptr)
    scalar_indptr = np.zeros(3 * length.size + 1, np.int64)
    np.cumsum(np.repeat(3 * length, 3), out=scalar_indptr[1:])
    width = np.repeat(3 * length, length)  # entries in a scalar row, by block
    first = 3 * np.arange(columns.size) + np.repeat(6 * indptr[:-1], length)
    entries = kernels.empty(9 * columns.size)
    scalar_columns = kernels.empty(9 * columns.size, np.int32)
    for r in range(3):
        for c in range(3):
            at = first + r * width + c
            entries[at] = values[:, r, c]
            scalar_columns[at] = 3 * columns + c
    return scalar_indptr, scalar_columns, entries


_DENSE_LIMIT = 16 * 2**30  # bytes


def dense(sub: Subdomain, lam: Modulus, mu: Modulus) -> Operator:
    n = 3 * sub.n_active
    if 8 * n * n > _DENSE_LIMIT:
        raise InputError(
            f"storage 'dense': {n} dofs on one rank need {8 * n * n / 2**30:.0f} GiB, "
            f"at most {_DENSE_LIMIT // 2**30} GiB are allowed; use csr or sym"
        )
    indptr, _, columns, values = assembled(sub, lam, mu, upper=False)
    A = kernels.zeros((n, n))
    rows = np.repeat(np.arange(sub.n_active), np.diff(indptr))
    A.reshape(sub.n_active, 3, sub.n_active, 3)[rows, :, columns, :] = values
    return _operator("dense", sub, (lam, mu), (A,), 2 * n * n, lambda: values[_own_blocks(indptr, columns)])


def by_elements(sub: Subdomain, lam: Modulus, mu: Modulus) -> Operator:
    at_interface = ((sub.cells >= sub.n_interior) & (sub.cells < sub.n_active)).any(axis=1)
    incomplete = (sub.cells >= sub.n_active).any(axis=1)
    order = np.lexsort((incomplete, ~at_interface))  # stable: cells stay near their nodes
    cells = np.ascontiguousarray(sub.cells[order])
    n_first = int(at_interface.sum())
    fixed = np.flatnonzero(sub.fixed).astype(np.int32)
    lame = np.array([np.atleast_1d(part_of(modulus, order)) for modulus in (lam, mu)])  # (2, 1 | n_cells)
    arrays = (sub.x, cells, fixed, np.array([n_first]), lame)
    return _operator(
        "ebe",
        sub,
        (lam, mu),
        arrays,
        flops=_EBE_FLOPS[cells.shape[1]] * len(cells),
        block_diagonal=lambda: _ebe_diagonal(sub, lam, mu),
        matrix_bytes=cells.nbytes + 32 * len(sub.x) + lame.nbytes,  # coordinates are padded
    )


def by_elements_on_device(sub: Subdomain, lam: Modulus, mu: Modulus, device: RankDevice) -> Operator:
    """Element by element on a device, without a matrix."""
    operator = by_elements(sub, lam, mu)
    x, cells, fixed, n_first, lame = operator.arrays
    ends = int(n_first[0]), lame, sub.n_interior, sub.n_active
    made = device.elements(x, cells, fixed, *ends, hex8_slopes())
    return structs.replace(operator, bind=made.bind, matrix_bytes=made.n_bytes, kernels=device, arrays=())


def hex8_slopes() -> F64:
    """(8, 8, 3) dN_a / dxi_e at the points of the 2x2x2 rule, nodes and points in VTK's order."""
    return HEX8.slope(HEX_CORNERS / np.sqrt(3))


# Per cell, counted in ebe.c. tet4: edges 9, gradients 27, weight 7, differences of u 9, H 45, stress 23,
# forces 45 + 9, added 12. hex8: at 8 points J 144, inverse 33, gradients 120, H 144, stress 25, forces 144;
# added 24.
_EBE_FLOPS = {4: 9 + 27 + 7 + 9 + 45 + 23 + 54 + 12, 8: 8 * (144 + 33 + 120 + 144 + 25 + 144) + 24}


def _ebe_diagonal(sub: Subdomain, lam: Modulus, mu: Modulus) -> F64:
    """Block diagonal, summed over cells in small slices."""
    npc = sub.cells.shape[1]
    diagonal = np.zeros((len(sub.x), 3, 3))
    for begin in range(0, len(sub.cells), 65536):
        chunk = slice(begin, begin + 65536)
        cells = sub.cells[chunk]
        ke = kernels.stiffness(sub.x, cells, part_of(lam, chunk), part_of(mu, chunk)).reshape(
            -1, npc, 3, npc, 3
        )
        for a in range(npc):
            np.add.at(diagonal, cells[:, a], ke[:, a, :, a, :])
    diagonal = diagonal[: sub.n_active]
    free = ~sub.fixed.reshape(-1, 3)
    return diagonal * (free[:, :, None] & free[:, None, :]) + (~free)[:, :, None] * np.eye(3)
