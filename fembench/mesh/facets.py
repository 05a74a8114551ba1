"""Facets of cells: the cell behind each, those on the boundary, those given by their nodes.

With the cells behind facets come the parts joined by facets, and the dual graph for
partitioners. Facets are matched by sorting a 64-bit key each. 1.3 M tetrahedra take half
a second.
"""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from fembench.base.errors import InputError
from fembench.mesh.elements import element_named

NONE = -1  # no cell behind this facet


class DualGraph(Struct, frozen=True, eq=False):
    """Cells joined by shared facets, compressed by rows: the neighbours of c are
    `neighbours[starts[c]:starts[c + 1]]`."""

    starts: np.ndarray  # (n_cells + 1,) int64
    neighbours: np.ndarray  # (2 * n_inner_facets,) int64


def dual_graph(behind: np.ndarray) -> DualGraph:
    """Graph of cells that share a facet, neighbours in the order of local facets."""
    inner = behind != NONE
    starts = np.zeros(len(behind) + 1, dtype=np.int64)
    np.cumsum(np.count_nonzero(inner, axis=1), out=starts[1:])
    return DualGraph(starts, behind[inner].astype(np.int64))


def facet_neighbours(cells: np.ndarray, element: str) -> np.ndarray:
    """(n_cells, n_facets) int32: the cell behind each local facet, -1 on the boundary.

    Raises InputError if three or more cells meet in one facet.
    """
    facets = element_named(element).facets
    first, second = _equal_pairs(cells, facets)  # slots: local facet * n_cells + cell
    behind = np.full(len(facets) * len(cells), NONE, dtype=np.int32)
    behind[first] = second % len(cells)
    behind[second] = first % len(cells)
    crowded = np.flatnonzero(first[1:] == second[:-1])
    if len(crowded):
        at = int(second[crowded[0]]) % len(cells)
        raise InputError(
            f"three or more cells meet in one facet of cell {at}; at most two can (duplicate cells?)"
        )
    return np.ascontiguousarray(behind.reshape(len(facets), len(cells)).T)


def load_graphs() -> None:
    """Import what `facet_parts` needs, before a clock runs."""
    import scipy.sparse.csgraph  # noqa: F401


def facet_parts(behind: np.ndarray) -> np.ndarray:
    """(n_cells,) int32 the part of each cell; parts share no facet."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    here, facet = np.nonzero(behind > np.arange(len(behind))[:, None])
    pairs = (here, behind[here, facet])
    graph = coo_array((np.ones(len(here), np.int8), pairs), shape=(len(behind), len(behind)))
    return connected_components(graph, directed=False)[1]


def _equal_pairs(cells: np.ndarray, facets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slots of facets with the same nodes, side by side when sorted: (n,), (n,) int64."""
    bits = int(cells.max(initial=0)).bit_length()
    if facets.shape[1] == 3 and 3 * bits <= 63:
        key = _packed_triples(cells, facets, bits)
        order = np.argsort(key, kind="stable")  # quick where numbers ascend through the mesh
        key = key[order]
        same = np.flatnonzero(key[1:] == key[:-1])
    else:
        rows = np.sort(cells[:, facets].transpose(1, 0, 2).reshape(-1, facets.shape[1]), axis=1)
        order = _order_of_rows(rows)
        same = _equal_neighbours(rows, order)
    return order[same], order[same + 1]


def _packed_triples(cells: np.ndarray, facets: np.ndarray, bits: int) -> np.ndarray:
    """(n_facets * n_cells,) int64: the three nodes of each facet, ascending, packed."""
    columns = [cells[:, node].astype(np.int64) for node in range(cells.shape[1])]
    key = np.empty((len(facets), len(cells)), dtype=np.int64)
    for row, (a, b, c) in enumerate(facets):
        low = np.minimum(columns[a], columns[b])
        high = np.maximum(columns[a], columns[b])
        middle = np.minimum(high, columns[c])
        high = np.maximum(high, columns[c])
        low, middle = np.minimum(low, middle), np.maximum(low, middle)
        key[row] = ((low << bits | middle) << bits) | high
    return key.reshape(-1)


def _order_of_rows(rows: np.ndarray) -> np.ndarray:
    """A permutation that brings equal rows (n, 3 | 4), each ascending, side by side.

    Sorts by a hashed 64-bit key per row, or by all columns if keys coincide.
    """
    key = _mixed(rows)
    order = np.argsort(key, kind="stable")
    key = key[order]
    clash = np.flatnonzero(key[1:] == key[:-1])
    if np.array_equal(rows[order[clash]], rows[order[clash + 1]]):
        return order
    return np.lexsort(rows.T[::-1])


def _mixed(rows: np.ndarray) -> np.ndarray:
    """(n,) uint64: equal for equal rows; for different ones nearly always different."""
    key = rows[:, 0].astype(np.uint64)
    for column in range(1, rows.shape[1]):
        key = (key ^ (key >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + rows[:, column].astype(
            np.uint64
        )
    return key


def _equal_neighbours(rows: np.ndarray, order: np.ndarray) -> np.ndarray:
    """(n,) positions i where rows[order[i]] == rows[order[i + 1]], all columns."""
    ordered = rows[order]
    return np.flatnonzero((ordered[1:] == ordered[:-1]).all(axis=1))


def boundary_facets(
    cells: np.ndarray, element: str, behind: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Facets of exactly one cell: (n, 3 | 4) int32 nodes, counter-clockwise seen from
    outside, and (n,) int32 their cells. In the order of cells, then of local facets.
    behind: their neighbours, if known."""
    behind = facet_neighbours(cells, element) if behind is None else behind
    cell, facet = np.nonzero(behind == NONE)
    return nodes_of_facets(cells, element, cell, facet), cell.astype(np.int32)


def nodes_of_tags(
    node_tags: Mapping[str, np.ndarray], facet_tags: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """name -> (n,) nodes in any order, with repetitions. A facet tag holds the nodes of
    its facets, and those of the node tag of the same name."""
    facets = {
        name: np.concatenate([facets.ravel(), node_tags.get(name, facets[:0].ravel())])
        for name, facets in facet_tags.items()
    }
    return {**node_tags, **facets}


def nodes_of_facets(cells: np.ndarray, element: str, cell: np.ndarray, facet: np.ndarray) -> np.ndarray:
    """(n, 3 | 4) int32: outward nodes of local facet `facet[i]` of `cell[i]`."""
    table = element_named(element).facets
    return np.ascontiguousarray(cells[cell[:, None], table[facet]])


def locate_facets(cells: np.ndarray, element: str, facets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cell and local facet of each row of `facets` (n, 3 or 4), its nodes in any order.

    A facet between two cells belongs to the lower one. (n,) and
    (n,); -1 if no cell has it.
    """
    table = element_named(element).facets
    marked = np.zeros(int(cells.max(initial=0)) + 1, dtype=bool)
    marked[facets.reshape(-1)] = True
    near = np.flatnonzero(np.count_nonzero(marked[cells], axis=1) >= table.shape[1])
    own = np.sort(cells[near][:, table].reshape(-1, table.shape[1]), axis=1)
    rows = np.concatenate([own, np.sort(facets, axis=1)])
    order = np.lexsort(rows.T[::-1])  # stable: of equal rows, the cells' own come first
    fresh = np.ones(len(rows), dtype=bool)
    fresh[1:] = np.any(rows[order[1:]] != rows[order[:-1]], axis=1)
    leader = np.empty(len(rows), dtype=np.int64)
    leader[order] = order[fresh][np.cumsum(fresh) - 1]
    found = leader[len(own) :]
    missing = found >= len(own)
    found = np.where(missing, 0, found)
    if not len(own):
        return np.full(len(facets), -1), np.full(len(facets), -1)
    return np.where(missing, -1, near[found // len(table)]), np.where(missing, -1, found % len(table))


def canonical_facets(cells: np.ndarray, element: str, facets: np.ndarray, where: str) -> np.ndarray:
    """The same facets outward, each once, by cell and local facet: (n, 3 or 4) int32.

    Raises InputError, beginning with `where`, for a facet that no cell has.
    """
    cell, facet = locate_facets(cells, element, facets)
    if np.any(cell < 0):
        lost = facets[cell < 0]
        first = lost[0].tolist()
        raise InputError(
            f"{where}: {len(lost)} of {len(facets)} facets belong to no cell, first with nodes {first}"
        )
    pairs = np.unique(cell * len(element_named(element).facets) + facet)
    cell, facet = np.divmod(pairs, len(element_named(element).facets))
    return nodes_of_facets(cells, element, cell, facet)
