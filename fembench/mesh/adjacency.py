"""The cell behind each facet, parts joined by facets, the dual graph for partitioners.

Facets are matched by sorting a 64-bit key each. 1.3 M tetrahedra take half a second.
"""

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
        low, high = np.minimum(columns[a], columns[b]), np.maximum(columns[a], columns[b])
        middle, high = np.minimum(high, columns[c]), np.maximum(high, columns[c])
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
