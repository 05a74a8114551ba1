"""The two supported cells: tables of nodes, facets and corners; volume, orientation, shape.

Node order is VTK's. A tet4 is positive if det(x1 - x0, x2 - x0, x3 - x0) > 0; a hex8
has its bottom 0-3 counter-clockwise seen from above and its top 4-7 over it.
"""

import numpy as np
from msgspec import Struct

from fembench.base.errors import InputError


class Element(Struct, frozen=True, eq=False):
    """Tables of one kind of cell; local node numbers throughout."""

    name: str
    nodes: int
    facets: np.ndarray  # (n_facets, 3 | 4) outward: counter-clockwise seen from outside
    corners: np.ndarray  # (n_corners, 4) a node and three neighbours, right-handed; of a tet, one
    edges: np.ndarray  # (n_edges, 2)
    meshio: str  # the name of the cell in meshio
    facet_meshio: str


TET4 = Element(
    name="tet4",
    nodes=4,
    facets=np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]]),  # facet i lies opposite node i
    corners=np.array([[0, 1, 2, 3]]),
    edges=np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]),
    meshio="tetra",
    facet_meshio="triangle",
)
HEX8 = Element(
    name="hex8",
    nodes=8,
    facets=np.array([[0, 3, 2, 1], [4, 5, 6, 7], [0, 1, 5, 4], [1, 2, 6, 5], [2, 3, 7, 6], [3, 0, 4, 7]]),
    corners=np.array(
        [
            [0, 1, 3, 4],
            [1, 2, 0, 5],
            [2, 3, 1, 6],
            [3, 0, 2, 7],
            [4, 7, 5, 0],
            [5, 4, 6, 1],
            [6, 5, 7, 2],
            [7, 6, 4, 3],
        ]
    ),
    edges=np.array(
        [[0, 1], [1, 2], [2, 3], [3, 0], [4, 5], [5, 6], [6, 7], [7, 4], [0, 4], [1, 5], [2, 6], [3, 7]]
    ),
    meshio="hexahedron",
    facet_meshio="quad",
)
ELEMENTS = {element.name: element for element in (TET4, HEX8)}


def element_named(name: str) -> Element:
    """The tables of `name`. Raises InputError for any other name."""
    if name not in ELEMENTS:
        raise InputError(f"unknown element '{name}'; expected one of {', '.join(ELEMENTS)}")
    return ELEMENTS[name]


PIECE = 4096  # cells whose quality is found at once


def determinants(x: np.ndarray, cells: np.ndarray, element: str) -> np.ndarray:
    """(n_cells, n_corners): triple product of the edges of a corner; right-handed: > 0."""
    return np.stack(_determinants(_points(x, cells), element), axis=1)


def volumes(x: np.ndarray, cells: np.ndarray, element: str) -> np.ndarray:
    """(n_cells,): signed volume.

    hex8: three triple products, exact for the trilinear cell (Dukowicz; Grandy 1997,
    UCRL-ID-128886).
    """
    if element == "tet4":
        return determinants(x, cells, element)[:, 0] / 6.0
    p = _points(x, cells)
    total = _triple(p[3] - p[1] + p[7] - p[2], p[6] - p[3], p[2] - p[0])
    total += _triple(p[4] - p[3] + p[5] - p[7], p[6] - p[4], p[7] - p[0])
    total += _triple(p[1] - p[4] + p[2] - p[5], p[6] - p[1], p[5] - p[0])
    return total / 12.0


def longest_edges(x: np.ndarray, cells: np.ndarray, element: str) -> np.ndarray:
    """(n_cells,): length of the longest edge."""
    p = _points(x, cells)
    return np.sqrt(np.max([_squared(p[b] - p[a]) for a, b in element_named(element).edges], axis=0))


def quality(x: np.ndarray, cells: np.ndarray, element: str) -> np.ndarray:
    """(n_cells,): mean ratio, 1 for a regular cell, 0 for a flat or inverted one.

    tet4: 12 (3 V)^(2/3) / sum of squared edges (Liu and Joe 1994).
    hex8: harmonic mean over the corners of 3 det^(2/3) / |J|_F^2 (Knupp 2001).
    """
    found = np.empty(len(cells))
    for low in range(0, len(cells), PIECE):
        found[low : low + PIECE] = _quality(_points(x, cells[low : low + PIECE]), element)
    return found


def _quality(p: np.ndarray, element: str) -> np.ndarray:
    """The same for cells that fit in cache."""
    det = np.maximum(_determinants(p, element), 0.0)
    if element == "tet4":
        squares = np.sum([_squared(p[b] - p[a]) for a, b in element_named(element).edges], axis=0)
        return np.minimum(12.0 * np.cbrt(det[0] / 2.0) ** 2 / np.where(squares > 0, squares, 1.0), 1.0)
    total = np.zeros(p.shape[2])
    for values, (a, *others) in zip(det, element_named(element).corners):
        norm = np.sum([_squared(p[b] - p[a]) for b in others], axis=0)
        total += norm / (3.0 * np.cbrt(np.maximum(values, np.finfo(float).tiny)) ** 2)
    return np.where((det > 0).all(axis=0), np.minimum(8.0 / total, 1.0), 0.0)


def _points(x: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """(nodes of the element, 3, n_cells): coordinates, each one contiguous."""
    return np.ascontiguousarray(x[cells].transpose(1, 2, 0))


def _determinants(p: np.ndarray, element: str) -> list[np.ndarray]:
    """At each corner of the element, (n_cells,) the triple product of its edges."""
    return [_triple(*(p[b] - p[a] for b in others)) for a, *others in element_named(element).corners]


def _squared(d: np.ndarray) -> np.ndarray:
    """(n,): squared lengths of d (3, n)."""
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2]


def _triple(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """(n,): a . (b x c) for arrays (3, n)."""
    return (
        a[0] * (b[1] * c[2] - b[2] * c[1])
        + a[1] * (b[2] * c[0] - b[0] * c[2])
        + a[2] * (b[0] * c[1] - b[1] * c[0])
    )
