"""A mesh in a folder, of which any rank can read a slice: a manifest and arrays of rows.

    manifest.json   counts, names of tags, hash of the content, check sums of every block of rows
    nodes.npy       (n_nodes, 3) float64 coordinates
    cells.npy       (n_cells, 4 | 8) int32
    corners.npy     (n_cells, 3) int32 lowest coordinates of the cells in steps, for bisection
    facets.npy      (n, 3) int32, ascending: cell, local facet, tag; the last tag is the whole boundary
    marks.npy       (n, 2) int32, ascending: node, mark; first the node tags, then the facet tags
    kinds.npy       (n, 2) int32, ascending: cell, cell tag
    parts.npy       (n_cells, 1) int32 connected part of each cell

A slice consists of whole blocks, and every block that is read is
compared with its check sum.
"""

import os
import zlib
from pathlib import Path

import msgspec
import numpy as np

from fembench.base.config import read_json
from fembench.base.errors import InputError
from fembench.mesh.elements import element_named
from fembench.mesh.facets import nodes_of_facets
from fembench.mesh.mesh import Mesh

BLOCK = 16384  # rows with a check sum of their own
BOUNDARY = "boundary"  # reserved tag: facets of one cell only
MANIFEST = "manifest.json"
COLUMNS = {"nodes": 3, "corners": 3, "facets": 3, "marks": 2, "kinds": 2, "parts": 1}
ARRAYS = (*COLUMNS, "cells")


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a folder says of its mesh. `seal` is the check sum of all the rest."""

    format: str
    name: str
    element: str
    hash: str  # of the content, as of the same mesh in any other file
    rows: dict[str, int]
    n_parts: int  # connected through facets
    node_tags: tuple[str, ...]
    facet_tags: tuple[str, ...]  # without the boundary
    cell_tags: tuple[str, ...] = ()
    sums: dict[str, tuple[int, ...]]  # of the file's header, then of every block
    seal: int = 0


FORMAT = "fembench sliced mesh 3"


def sealed(manifest: Manifest) -> Manifest:
    """The manifest with its own check sum."""
    return msgspec.structs.replace(manifest, seal=_seal(manifest))


def _seal(manifest: Manifest) -> int:
    return zlib.crc32(msgspec.json.encode(msgspec.structs.replace(manifest, seal=0), order="sorted"))


def _complete(manifest: Manifest) -> bool:
    """Whether every array has its rows, and a check sum for its header and every block."""
    rows, sums, n_cells = manifest.rows, manifest.sums, manifest.rows.get("cells", 0)
    if set(rows) != set(ARRAYS) or set(sums) != set(ARRAYS):
        return False
    if min(rows["nodes"], n_cells) < 1 or rows["corners"] != n_cells or rows["parts"] not in (0, n_cells):
        return False
    return all(len(sums[name]) == (1 + len(blocks(n)) if n else 0) for name, n in rows.items())


def is_sliced(spec: str) -> bool:
    """Whether `spec` names a folder, as only sliced meshes do."""
    return os.path.isdir(spec)  # also of a name that is too long


def check_sum(rows: np.ndarray) -> int:
    """Of the bytes of a block of rows."""
    return zlib.crc32(memoryview(np.ascontiguousarray(rows)).cast("B"))  # type: ignore[arg-type]


def head_sum(path: Path) -> int:
    """The check sum of what precedes the rows; numpy trips over some damage there."""
    with open(path, "rb") as stream:
        start = stream.read(10)
        return zlib.crc32(start + stream.read(int.from_bytes(start[8:], "little")))


def shape_of(name: str, element: str) -> tuple[int, str]:
    """Columns and type of an array."""
    return COLUMNS.get(name) or element_named(element).nodes, "<f8" if name == "nodes" else "<i4"


def blocks(n_rows: int) -> list[slice]:
    """The rows of each block."""
    return [slice(low, min(low + BLOCK, n_rows)) for low in range(0, n_rows, BLOCK)]


class Sliced:
    """A sliced mesh, opened. Every method raises InputError, naming the file, for damage."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        if not (self.folder / MANIFEST).is_file():
            raise InputError(
                f"cannot read mesh {folder}: no {MANIFEST} in this folder; expected one that "
                "'fembench mesh convert' wrote"
            )
        self.manifest = read_json(self.folder / MANIFEST, Manifest)
        if self.manifest.format != FORMAT:
            raise InputError(
                f"cannot read mesh {folder}: its format is '{self.manifest.format}', expected '{FORMAT}';"
                " convert the mesh again"
            )
        if self.manifest.seal != _seal(self.manifest):
            raise self._damaged(MANIFEST)
        if not _complete(self.manifest):
            raise self._damaged(MANIFEST)
        self._arrays = {name: self._open(name) for name in ARRAYS}

    def _damaged(self, name: str) -> InputError:
        return InputError(f"cannot read mesh {self.folder}: {name} is damaged; convert the mesh again")

    def _open(self, name: str) -> np.ndarray:
        columns, kind = shape_of(name, self.manifest.element)
        rows = self.manifest.rows[name]
        if not rows:  # nothing can be mapped
            return np.empty((0, columns), kind)
        try:
            if head_sum(self.folder / f"{name}.npy") != self.manifest.sums[name][0]:
                raise self._damaged(f"{name}.npy")
            array = np.load(self.folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise self._damaged(f"{name}.npy") from error
        if (array.shape, array.dtype) != ((rows, columns), np.dtype(kind)):
            raise self._damaged(f"{name}.npy")
        return array

    @property
    def columns(self) -> int:
        """Nodes of a cell."""
        return element_named(self.manifest.element).nodes

    @property
    def n_nodes(self) -> int:
        return self.manifest.rows["nodes"]

    @property
    def n_cells(self) -> int:
        return self.manifest.rows["cells"]

    def rows(self, name: str, low: int, high: int) -> np.ndarray:
        """A copy of rows low … high - 1: whole blocks, but at the end of the array."""
        sums = self.manifest.sums[name]
        array = self._arrays[name]
        copy = array[:0]
        if high > low:  # read, not mapped: pages of a map would stay in memory
            at, path = array.offset + low * array.strides[0], self.folder / f"{name}.npy"  # type: ignore[attr-defined]
            copy = np.fromfile(path, array.dtype, (high - low) * array.shape[1], offset=at)
            copy = copy.reshape(high - low, array.shape[1])
        for block in blocks(len(copy)):
            if check_sum(copy[block]) != sums[1 + (low + block.start) // BLOCK]:
                raise self._damaged(f"{name}.npy")
        return copy

    def rows_between(self, name: str, first: int, last: int) -> np.ndarray:
        """The rows whose first column is first … last - 1, of an array in this order."""
        keys = self._arrays[name][:, 0]
        low, high = (int(np.searchsorted(keys, key)) for key in (first, last))
        start = low // BLOCK * BLOCK
        return self.rows(name, start, min(-(-high // BLOCK) * BLOCK, len(keys)))[low - start : high - start]

    def share(self, name: str, part: int, parts: int) -> tuple[int, int]:
        """The rows of one of `parts` slices of about as many blocks; some may be empty."""
        n, total = -(-self.manifest.rows[name] // BLOCK), self.manifest.rows[name]
        low, high = (min(n * p // parts * BLOCK, total) for p in (part, part + 1))
        return low, high

    def whole(self) -> Mesh:
        """All of it as one mesh."""
        m = self.manifest
        x, cells, facets, marks, kinds = (
            self.rows(name, 0, m.rows[name]) for name in ("nodes", "cells", "facets", "marks", "kinds")
        )
        mesh = Mesh(
            x,
            cells,
            m.element,
            m.name,
            {tag: marks[marks[:, 1] == k, 0] for k, tag in enumerate(m.node_tags)},
            {tag: tagged(cells, m.element, facets[facets[:, 2] == k]) for k, tag in enumerate(m.facet_tags)},
            {tag: kinds[kinds[:, 1] == k, 0] for k, tag in enumerate(m.cell_tags)},
        )
        if mesh.hash != m.hash:
            raise self._damaged(MANIFEST)
        return mesh


def tagged(cells: np.ndarray, element: str, rows: np.ndarray) -> np.ndarray:
    """(n, 3 | 4) int32: outward nodes of facets given as rows of cell, local facet, …"""
    return nodes_of_facets(cells, element, rows[:, 0], rows[:, 1])
