"""Facets of cells: those on the boundary, and those given by lists of nodes."""

from collections.abc import Mapping

import numpy as np

from fembench.base.errors import InputError
from fembench.mesh.adjacency import NONE, facet_neighbours
from fembench.mesh.elements import element_named


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
