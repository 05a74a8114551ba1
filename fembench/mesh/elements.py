"""Tables of the two supported cells: nodes, facets, corners.

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
    corners: np.ndarray  # (n_corners, 4) a node and three neighbours, right-handed; one suffices for a tet
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
