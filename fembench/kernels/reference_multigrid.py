"""The plain twins of the kernels of multigrid.c."""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Index = NDArray[np.int32]
Weights = NDArray[np.float32]
Pattern = tuple[NDArray[np.int64], Index, Index, Vector]


class Transfer:
    """Between a fine and a coarse grid: node i has the parents parent (n, 8) with weight (n, 8), zeros last.

    restrict(): coarse = P^T (share r), share (3 n_interface,) of the last nodes. prolong(): fine = P coarse.
    """

    def __init__(
        self, parent: Index, weight: Weights, share: Vector, r: Vector, coarse: Vector, fine: Vector
    ) -> None:
        self.parent, self.weight, self.share = parent, weight, share
        self.r, self.coarse, self.fine = r, coarse.reshape(-1, 3), fine.reshape(-1, 3)

    def restrict(self) -> None:
        """Overwrite coarse."""
        own = self.r.copy()
        own[own.size - self.share.size :] *= self.share
        self.coarse[:] = 0.0
        np.add.at(self.coarse, self.parent, self.weight[:, :, None] * own.reshape(-1, 1, 3))

    def prolong(self) -> None:
        """Overwrite fine."""
        self.fine[:] = 0.0
        for parent, weight in zip(self.parent.T, self.weight.T):
            self.fine += weight[:, None] * self.coarse[parent]


def pieces(
    indptr: NDArray[np.int64],
    rows: Index,
    columns: Index,
    kind: NDArray[np.uint8],
    name: NDArray[np.int64],
    corner: NDArray[np.int64],
    weight: Weights,
) -> tuple[Index, NDArray[np.int64]]:
    """Which children of the same parents are connected by the pattern of a symmetric matrix: (root, least).

    kind (n,): only nodes of one kind are. corner, weight (n, 8): numbers of parents, and weights, zeros last.
    root (n, 8): the first slot 8 i + k connected to each. least (n, 8): at roots, the least name of a piece.
    """
    root = np.arange(8 * len(rows)).reshape(-1, 8)
    row = np.repeat(rows, np.diff(indptr))
    alike = kind[row] == kind[columns]
    i, j = row[alike], columns[alike]
    common = (corner[i][:, :, None] == corner[j][:, None, :]) & (weight[i] > 0)[:, :, None]
    edge, a, b = np.nonzero(common & (weight[j] > 0)[:, None, :])
    before = np.full_like(root, -1)
    while not np.array_equal(root, before):
        before = root.copy()
        low = np.minimum(root[i[edge], a], root[j[edge], b])
        np.minimum.at(root, (i[edge], a), low)
        np.minimum.at(root, (j[edge], b), low)
    least = np.full(root.size, np.iinfo(np.int64).max)
    np.minimum.at(least, root.ravel(), np.repeat(name, 8))
    return root.astype(np.int32), least.reshape(root.shape)


def galerkin(
    indptr: NDArray[np.int64],
    rows: Index,
    columns: Index,
    values: Vector,
    fixed: NDArray[np.bool_],
    parent: Index,
    weight: Weights,
    n_coarse: int,
    n_coarse_interior: int,
) -> Pattern:
    """P^T A P of a symmetric matrix, stored alike: (indptr, rows, columns, values (n_blocks, 3, 3)).

    fixed (3 n,) bool: dofs whose diagonal of one in A is left out. parent, weight (n, 8): as of Transfer.
    """
    P = np.zeros((len(rows), n_coarse))
    np.add.at(P, (np.arange(len(rows))[:, None], parent), weight)
    A = np.zeros((len(rows), len(rows), 3, 3))
    row = np.repeat(rows, np.diff(indptr))
    A[columns, row] = values.transpose(0, 2, 1)
    A[row, columns] = values
    nodes, component = np.divmod(np.flatnonzero(fixed), 3)
    A[nodes, nodes, component, component] = 0.0
    coarse = np.einsum("iI,ijab,jJ->IJab", P, A, P, optimize=True)
    there = np.zeros((len(rows), len(rows)), bool)
    there[row, columns] = there[columns, row] = True
    touched = P != 0.0
    return _upper((touched.T @ there @ touched) | np.eye(n_coarse, dtype=bool), coarse, n_coarse_interior)


def _upper(there: NDArray[np.bool_], blocks: Vector, n_interior: int) -> Pattern:
    """Every pair of nodes once, as pattern.c stores it."""
    n = len(there)
    rows = np.r_[n_interior:n, :n_interior].astype(np.int32)
    place = np.argsort(rows)
    first, second = np.nonzero(there & (place[:, None] <= place[None, :]))
    order = np.lexsort((second, second != first, place[first]))
    first, second = first[order], second[order]
    indptr = np.searchsorted(place[first], np.arange(n + 1)).astype(np.int64)
    values = np.empty((len(first) + 1, 3, 3))[:-1]
    values[:] = blocks[first, second]
    return indptr, rows, second.astype(np.int32), values
