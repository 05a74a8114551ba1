"""Mesh: coordinates, cells, tags, and a content hash that every file derived from it repeats."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from fembench.base.errors import InputError
from fembench.mesh.adjacency import facet_neighbours
from fembench.mesh.check import check_mesh
from fembench.mesh.elements import element_named
from fembench.mesh.facets import canonical_facets

PIECE = 1 << 17  # rows that are hashed at once


@dataclass(frozen=True, eq=False, slots=True)
class Mesh:
    """Cells of one kind in space. Arrays become read-only.

    The constructor trusts its arrays (generators use it); `Mesh.create` checks them.
    """

    x: np.ndarray  # (n_nodes, 3) float64
    cells: np.ndarray  # (n_cells, nodes of the element) int32
    element: str  # "tet4" or "hex8"
    name: str = "mesh"
    node_tags: dict[str, np.ndarray] = field(default_factory=dict)  # name -> (n,) int32 nodes, ascending
    facet_tags: dict[str, np.ndarray] = field(default_factory=dict)  # name -> (n, 3 | 4) int32, outward
    _hash: str = field(default="", init=False, repr=False)
    _behind: np.ndarray | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        for array in (self.x, self.cells, *self.node_tags.values(), *self.facet_tags.values()):
            array.setflags(write=False)

    @classmethod
    def create(
        cls,
        x: ArrayLike,
        cells: ArrayLike,
        element: str,
        name: str = "mesh",
        node_tags: Mapping[str, ArrayLike] | None = None,
        facet_tags: Mapping[str, ArrayLike] | None = None,
    ) -> "Mesh":
        """A mesh from unchecked arrays: checked and copied, tags in canonical order, empty tags dropped.

        Raises InputError: wrong shapes, node numbers out of range, coordinates not finite, orphan
        nodes, inverted or degenerate cells, more than two cells at a facet, tags of missing nodes or facets.
        """
        where = f"mesh {name}"
        # astype, for np.array keeps the byte order that a file states
        coordinates, wide = np.asarray(x).astype(np.float64, order="C"), np.asarray(cells)
        behind = check_mesh(coordinates, wide, element, where)
        small = wide.astype(np.int32, order="C")
        mesh = cls(
            coordinates,
            small,
            element,
            name,
            _filled(
                {
                    tag: _nodes(n, len(coordinates), f"{where}, node tag '{tag}'")
                    for tag, n in (node_tags or {}).items()
                }
            ),
            _filled(
                {
                    tag: _facets(small, element, f, f"{where}, facet tag '{tag}'")
                    for tag, f in (facet_tags or {}).items()
                }
            ),
        )
        object.__setattr__(mesh, "_behind", behind)
        return mesh

    @property
    def n_nodes(self) -> int:
        return len(self.x)

    @property
    def n_cells(self) -> int:
        return len(self.cells)

    @property
    def hash(self) -> str:
        """SHA-256 of element, coordinates, cells and tags, hexadecimal; independent of the name."""
        if not self._hash:
            found = content_hash(self.element, self.x, self.cells, self.node_tags, self.facet_tags)
            object.__setattr__(self, "_hash", found)  # computed once, on demand
        return self._hash

    @property
    def behind(self) -> np.ndarray:
        """(n_cells, n_facets) int32: the cell behind each local facet, -1 on the boundary. Computed once."""
        if self._behind is None:
            object.__setattr__(self, "_behind", facet_neighbours(self.cells, self.element))
        return self._behind  # type: ignore[return-value]


def content_hash(
    element: str,
    x: np.ndarray,
    cells: np.ndarray,
    node_tags: Mapping[str, np.ndarray],
    facet_tags: Mapping[str, np.ndarray],
) -> str:
    """The hash of a mesh with this content; arrays in files are read piece by piece."""
    digest = hashlib.sha256(f"fembench mesh 1 {element} {len(x)} {len(cells)}".encode())
    for array, kind in ((x, "<f8"), (cells, "<i4")):
        for low in range(0, len(array), PIECE):
            piece = array[low : low + PIECE].astype(kind)
            digest.update(piece + piece.dtype.type(0))  # + 0: minus zero is zero
    for kind, tags in (("node", node_tags), ("facet", facet_tags)):
        for tag in sorted(tags):
            digest.update(f"{kind} {tag} {len(tags[tag])}\0".encode())
            digest.update(tags[tag].astype("<i4").tobytes())
    return digest.hexdigest()


def _filled(tags: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {tag: members for tag, members in tags.items() if len(members)}


def _nodes(nodes: ArrayLike, n_nodes: int, where: str) -> np.ndarray:
    """(n,) int32 ascending, each node once."""
    unique = np.unique(np.asarray(nodes, dtype=np.int64))
    if len(unique) and (unique[0] < 0 or unique[-1] >= n_nodes):
        raise InputError(f"{where}: names nodes {unique[0]} to {unique[-1]}; expected 0 to {n_nodes - 1}")
    return unique.astype(np.int32)


def _facets(cells: np.ndarray, element: str, facets: ArrayLike, where: str) -> np.ndarray:
    """(n, 3 | 4) int32 canonical."""
    size = element_named(element).facets.shape[1]
    rows = np.asarray(facets, dtype=np.int64)
    if rows.ndim != 2 or rows.shape[1] != size:
        raise InputError(f"{where}: shape {rows.shape}; expected (n_facets, {size}) for {element}")
    if len(rows) and (rows.min() < 0 or rows.max() > cells.max()):
        raise InputError(f"{where}: names nodes {rows.min()} to {rows.max()}; expected 0 to {cells.max()}")
    return canonical_facets(cells, element, rows, where)
