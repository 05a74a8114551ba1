"""Plain twins of kernels whose results no formula of a line states: assembly, and pieces of a grid."""

import numpy as np

from fembench.fem.elements import element_stiffness


def stiffness(x, cells, lam, mu):
    """ke (n_cells, 3 npc, 3 npc) of every cell; lam, mu: of all cells, or (n_cells,)."""
    return element_stiffness(x[cells], {4: "tet4", 8: "hex8"}[cells.shape[1]], lam, mu)


def _pairs(cells):
    """Row and column node of every block of every cell, flat."""
    npc = cells.shape[1]
    wide = cells.astype(np.int64)
    return np.repeat(wide, npc, axis=1).reshape(-1), np.tile(wide, (1, npc)).reshape(-1)


def _storage_rank(n_interior, n_active, upper):
    """Place of each node's row in storage: interface rows first where only the upper triangle is kept."""
    nodes = np.arange(n_active, dtype=np.int64)
    return (nodes - n_interior) % n_active if upper and n_active else nodes


def incidence(cells, n_nodes):
    """Where each node stands: (start (n_nodes+2,) int64, at (n_cells*npc,) int32, ascending (n_cells, npc)).

    ascending: the nodes of each cell, sorted. at[start[i]:start[i+1]]: node i's places in it, counted flat.
    """
    ascending = np.sort(cells, axis=1)
    start = np.zeros(n_nodes + 2, np.int64)
    np.cumsum(np.bincount(ascending.reshape(-1), minlength=n_nodes), out=start[1:-1])
    start[-1] = start[-2]
    return start, np.argsort(ascending.reshape(-1), kind="stable").astype(np.int32), ascending


def pattern(cells, n_interior, n_active, upper):
    """Which blocks exist: indptr (n_active+1,), rows (n_active,) in storage order, columns (n_blocks,).

    Full: every pair of nodes with a common cell, columns ascending. Upper: every pair once, in the row
    that is stored first, interface rows before interior ones; a row's own node leads, others ascend.
    Nodes >= n_active are left out.
    """
    i, j = _pairs(cells)
    there = (i < n_active) & (j < n_active)
    i, j = np.divmod(np.unique(i[there] * max(n_active, 1) + j[there]), max(n_active, 1))
    place = _storage_rank(n_interior, n_active, upper)
    if upper:
        kept = place[i] <= place[j]
        i, j = i[kept], j[kept]
    order = np.lexsort((j, (i != j) & upper, place[i]))
    i, j = i[order], j[order]
    rows = np.argsort(place).astype(np.int32)
    indptr = np.zeros(n_active + 1, np.int64)
    np.cumsum(np.bincount(place[i], minlength=n_active), out=indptr[1:])
    return indptr, rows, j.astype(np.int32)


def cell_order(cells, numbers):
    """Order (n_cells,) of the cells by their lowest node, equal ones by number."""
    return np.lexsort((numbers, cells.min(axis=1)))


def assemble(x, cells, lam, mu, n_interior, upper, fixed, indptr, rows, columns):
    """values (n_blocks, 3, 3) on a pattern; fixed (3 n_active,): rows and columns zero, diagonal one."""
    n, npc = rows.size, cells.shape[1]
    blocks = stiffness(x, cells, lam, mu).reshape(-1, npc, 3, npc, 3).swapaxes(2, 3).reshape(-1, 3, 3)
    i, j = _pairs(cells)
    stored_i = np.repeat(rows.astype(np.int64), np.diff(indptr))
    stored = stored_i * max(n, 1) + columns
    place = _storage_rank(n_interior, n, upper)
    there = (i < n) & (j < n)
    if upper:
        there[there] = place[i[there]] <= place[j[there]]
    order = np.argsort(stored)
    found = order[np.searchsorted(stored, i[there] * max(n, 1) + j[there], sorter=order)]
    values = np.zeros((columns.size, 3, 3))
    np.add.at(values, found, blocks[there])
    free = ~fixed.reshape(n, 3)
    values *= free[stored_i][:, :, None] & free[columns][:, None, :]
    diagonal = np.flatnonzero(stored_i == columns)
    values[diagonal] += (~free[columns[diagonal]])[:, :, None] * np.eye(3)
    return values


def pieces(indptr, rows, columns, kind, name, corner, weight):
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
