"""Mesh: coordinates, cells, tags, and a content hash that every
file derived from it repeats.

Checks of a mesh before anything is computed on it. Each raises InputError with one line.

Facts about a mesh, as plain numbers and as lines of text."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fembench.base.errors import InputError
from fembench.base.units import few, plural
from fembench.mesh.elements import determinants, element_named, longest_edges, quality, volumes
from fembench.mesh.facets import canonical_facets, facet_neighbours, facet_parts

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
    node_tags: dict[str, np.ndarray] = field(default_factory=dict)  # name -> (n,) int32, ascending
    facet_tags: dict[str, np.ndarray] = field(default_factory=dict)  # name -> (n, 3 | 4) int32, outward
    cell_tags: dict[str, np.ndarray] = field(default_factory=dict)  # name -> (n,) int32, ascending
    _hash: str = field(default="", init=False, repr=False)
    _behind: np.ndarray | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        tagged = (*self.node_tags.values(), *self.facet_tags.values(), *self.cell_tags.values())
        for array in (self.x, self.cells, *tagged):
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
        cell_tags: Mapping[str, ArrayLike] | None = None,
    ) -> "Mesh":
        """A mesh from unchecked arrays: checked, copied, tags
        ordered, empty ones dropped.

        Raises InputError: wrong shapes, node numbers out of range, coordinates not
        finite, orphan nodes, inverted or degenerate cells, more than two cells at a
        facet, tags of what is missing.
        """
        where = f"mesh {name}"
        # astype, for np.array keeps the byte order that a file states
        places = np.asarray(x).astype(np.float64, order="C")
        wide = np.asarray(cells)
        behind = check_mesh(places, wide, element, where)
        small = wide.astype(np.int32, order="C")
        mesh = cls(
            places,
            small,
            element,
            name,
            _filled(node_tags, f"{where}, node tag", lambda n, of: _members(n, len(places), of, "nodes")),
            _filled(facet_tags, f"{where}, facet tag", lambda f, of: _facets(small, element, f, of)),
            _filled(cell_tags, f"{where}, cell tag", lambda c, of: _members(c, len(small), of, "cells")),
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
        """SHA-256 of element, coordinates, cells and tags, in hex; not of the name."""
        if not self._hash:
            tags = self.node_tags, self.facet_tags, self.cell_tags
            found = content_hash(self.element, self.x, self.cells, *tags)
            object.__setattr__(self, "_hash", found)  # computed once, on demand
        return self._hash

    @property
    def behind(self) -> np.ndarray:
        """(n_cells, n_facets) int32: the cell behind each facet, -1: none. Computed once."""
        if self._behind is None:
            object.__setattr__(self, "_behind", facet_neighbours(self.cells, self.element))
        return self._behind  # type: ignore[return-value]


def content_hash(
    element: str,
    x: np.ndarray,
    cells: np.ndarray,
    node_tags: Mapping[str, np.ndarray],
    facet_tags: Mapping[str, np.ndarray],
    cell_tags: Mapping[str, np.ndarray],
) -> str:
    """The hash of a mesh with this content; arrays in files are read piece by piece.

    A tag of all cells distinguishes none: some formats have no cells without a tag.
    """
    digest = hashlib.sha256(f"fembench mesh 1 {element} {len(x)} {len(cells)}".encode())
    for array, kind in ((x, "<f8"), (cells, "<i4")):
        for low in range(0, len(array), PIECE):
            piece = array[low : low + PIECE].astype(kind)
            digest.update(piece + piece.dtype.type(0))  # + 0: minus zero is zero
    some = {tag: members for tag, members in cell_tags.items() if len(members) < len(cells)}
    for kind, tags in (("node", node_tags), ("facet", facet_tags), ("cell", some)):
        for tag in sorted(tags):
            digest.update(f"{kind} {tag} {len(tags[tag])}\0".encode())
            digest.update(tags[tag].astype("<i4").tobytes())
    return digest.hexdigest()


def _filled(
    tags: Mapping[str, ArrayLike] | None, what: str, checked: Callable[[ArrayLike, str], np.ndarray]
) -> dict[str, np.ndarray]:
    """The tags that have members, each checked under its name."""
    found = {tag: checked(members, f"{what} '{tag}'") for tag, members in (tags or {}).items()}
    return {tag: members for tag, members in found.items() if len(members)}


def _members(numbers: ArrayLike, n: int, where: str, kind: str) -> np.ndarray:
    """(n,) int32 ascending, each number once."""
    unique = np.unique(np.asarray(numbers, dtype=np.int64))
    if len(unique) and (unique[0] < 0 or unique[-1] >= n):
        raise InputError(f"{where}: names {kind} {unique[0]} to {unique[-1]}; expected 0 to {n - 1}")
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


FLAT = 1e-10  # of (longest edge)^3: a corner below is flat


def check_mesh(x: np.ndarray, cells: np.ndarray, element: str, where: str) -> np.ndarray:
    """All checks, the cheap ones first: the cell behind each facet. Messages begin with
    `where`, as in "mesh wing.msh"."""
    check_shapes(x, cells, element, where)
    check_nodes(x, cells, where)
    check_orientation(x, cells, element, where)
    try:
        return facet_neighbours(cells, element)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def check_shapes(x: np.ndarray, cells: np.ndarray, element: str, where: str) -> None:
    """Coordinates (n, 3), cells (n, nodes of the element), not empty, within int32."""
    nodes = element_named(element).nodes
    if x.ndim != 2 or x.shape[1] != 3:
        raise InputError(f"{where}: coordinates have shape {x.shape}; expected (n_nodes, 3)")
    if cells.ndim != 2 or cells.shape[1] != nodes:
        raise InputError(
            f"{where}: cells have shape {cells.shape}; expected (n_cells, {nodes}) for {element}"
        )
    if cells.dtype.kind not in "iu":
        raise InputError(f"{where}: cells are of type {cells.dtype}; expected integers")
    if not len(cells):
        raise InputError(f"{where}: no cells; expected at least one {element}")
    if max(len(x), len(cells)) > np.iinfo(np.int32).max:
        raise InputError(f"{where}: {len(x)} nodes and {len(cells)} cells are too many for 32-bit numbers")


def check_nodes(x: np.ndarray, cells: np.ndarray, where: str) -> None:
    """Node numbers within range, coordinates finite, every node in some cell."""
    low, high = int(cells.min()), int(cells.max())
    if low < 0 or high >= len(x):
        raise InputError(f"{where}: cells name nodes {low} to {high}; expected 0 to {len(x) - 1}")
    infinite = ~np.isfinite(x).all(axis=1)
    if infinite.any():
        raise InputError(f"{where}: {_some(infinite, 'node')} with a coordinate that is not finite")
    orphan = np.ones(len(x), dtype=bool)
    orphan[cells.reshape(-1)] = False
    if orphan.any():
        raise InputError(f"{where}: {_some(orphan, 'node')} in no cell; expected every node in at least one")


def check_orientation(x: np.ndarray, cells: np.ndarray, element: str, where: str) -> None:
    """Every corner of every cell right-handed and not flat."""
    with np.errstate(all="ignore"):  # overflow: not-a-number is flat
        relative = determinants(x, cells, element) / longest_edges(x, cells, element)[:, None] ** 3
    flat = ~(np.abs(relative) > FLAT).all(axis=1)
    if flat.any():
        raise InputError(f"{where}: {_some(flat, 'cell')} degenerate (flat, or with coinciding nodes)")
    inverted = (relative < 0).any(axis=1)
    if inverted.any():
        raise InputError(f"{where}: {_some(inverted, 'cell')} inverted (negative volume at a corner)")


def _some(bad: np.ndarray, noun: str) -> str:
    """'3 of 864 cells (first: 17)'."""
    return f"{np.count_nonzero(bad)} of {len(bad)} {noun}s (first: {int(np.argmax(bad))})"


LEVEL = 1e-9  # of the mesh's extent: nodes this close to a plane lie in it
SHOWN = 5  # parts whose cells a line counts


def summary(mesh: Mesh) -> dict[str, Any]:
    """Counts, hash, cells of each part, volume, bounding box, quality, tags; lengths in m.

    Equations are counted with the face of lowest x clamped, as an example.
    """
    low, high = mesh.x.min(axis=0), mesh.x.max(axis=0)
    clamped = int(np.count_nonzero(mesh.x[:, 0] <= low[0] + LEVEL * float((high - low).max())))
    shape = quality(mesh.x, mesh.cells, mesh.element)
    return {
        "name": mesh.name,
        "element": mesh.element,
        "nodes": mesh.n_nodes,
        "cells": mesh.n_cells,
        "clamped_nodes": clamped,
        "equations": 3 * (mesh.n_nodes - clamped),
        "hash": mesh.hash,
        "parts": np.bincount(facet_parts(mesh.behind)).tolist(),
        "volume": float(volumes(mesh.x, mesh.cells, mesh.element).sum()),
        "lower": low.tolist(),
        "upper": high.tolist(),
        "quality_min": float(shape.min()),
        "quality_mean": float(shape.mean()),
        "node_tags": {tag: len(nodes) for tag, nodes in sorted(mesh.node_tags.items())},
        "facet_tags": {tag: len(facets) for tag, facets in sorted(mesh.facet_tags.items())},
        "cell_tags": {tag: len(cells) for tag, cells in sorted(mesh.cell_tags.items())},
    }


def lines(facts: dict[str, Any]) -> list[str]:
    """The same as text, one fact per line."""
    tags = [f"{tag} ({plural(count, 'facet')})" for tag, count in facts["facet_tags"].items()]
    tags += [f"{tag} ({plural(count, 'node')})" for tag, count in facts["node_tags"].items()]
    tags += [f"{tag} ({plural(count, 'cell')})" for tag, count in facts["cell_tags"].items()]
    corner = " to ".join("(" + ", ".join(f"{a:g}" for a in facts[key]) + ")" for key in ("lower", "upper"))
    clamped = plural(facts["clamped_nodes"], "node")
    return [
        f"mesh        {facts['name']}",
        f"hash        {facts['hash']}",
        f"nodes       {facts['nodes']}",
        f"cells       {facts['cells']} {facts['element']}",
        f"equations   {facts['equations']} with the {clamped} of lowest x clamped",
        f"parts       {_parts(facts['parts'])}",
        f"volume      {facts['volume']:.9g} m³ in {corner} m",
        f"quality     {facts['quality_min']:.3f} worst, {facts['quality_mean']:.3f} mean (1 is regular)",
        f"tags        {', '.join(tags) if tags else 'none'}",
    ]


def _parts(cells: Sequence[int]) -> str:
    """'1', or the number of parts and their cells."""
    each = few([str(n) for n in cells], SHOWN)
    return f"{len(cells)} that share no facet, of {each} cells" if len(cells) > 1 else "1"
