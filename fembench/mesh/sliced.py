"""A mesh in a folder, of which any rank can read a slice: a manifest and arrays of rows.

    manifest.json   counts, names of tags, hash of the content, check sums of every block of rows
    nodes.npy       (n_nodes, 3) float64 coordinates
    cells.npy       (n_cells, 4 | 8) int32
    corners.npy     (n_cells, 3) int32 lowest coordinates of the cells in steps, for bisection
    facets.npy      (n, 3) int32, ascending: cell, local facet, tag; the last tag is the whole boundary
    marks.npy       (n, 2) int32, ascending: node, mark; first the node tags, then the facet tags
    kinds.npy       (n, 2) int32, ascending: cell, cell tag
    parts.npy       (n_cells, 1) int32 connected part of each cell

A slice consists of whole blocks. Every block that is read is compared with its check sum, and its
numbers with their ranges: a check sum may fit what another program wrote.

What ranks tell each other about a mesh spread over them, for code without MPI: corners of
cells in whole steps, so that partitions do not depend on rounding.
"""

import io
import os
import zlib
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np
from numpy.lib.format import write_array_header_1_0

from fembench.base.config import read_json
from fembench.base.errors import InputError
from fembench.mesh.elements import ELEMENTS, element_named
from fembench.mesh.facets import nodes_of_facets
from fembench.mesh.mesh import Mesh


class World(Protocol):
    """All are collective and element-wise over arrays; all ranks get one result."""

    def sum(self, values: np.ndarray) -> np.ndarray: ...

    def max(self, values: np.ndarray) -> np.ndarray: ...

    def rows(self, own: np.ndarray) -> np.ndarray:
        """Those of all ranks."""
        ...

    def holders(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each number, whether this rank is the first to have it; how many have it."""
        ...


class Alone:
    """The world of one rank, which holds everything."""

    def sum(self, values: np.ndarray) -> np.ndarray:
        return values

    max = rows = sum

    def holders(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.ones(len(numbers), dtype=bool), np.ones(len(numbers), dtype=np.int64)


RESOLUTION = 2**30  # steps across the longest side; rounding noise is smaller than one


def lowest_corners(x: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """(n_cells, 3) float64: of each cell, the lowest coordinates of its nodes."""
    lowest = x[cells[:, 0]]
    for corner in range(1, cells.shape[1]):
        np.minimum(lowest, x[cells[:, corner]], out=lowest)
    return lowest


def in_steps(corners: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """(n_cells, 3) int32 from 0 to RESOLUTION. low, high: (3,) bounds of all corners."""
    extent = float((high - low).max()) or 1.0
    return np.rint((corners - low) * (RESOLUTION / extent)).astype(np.int32)


BLOCK = 16384  # rows with a check sum of their own
BOUNDARY = "boundary"  # reserved tag: facets of one cell only
MANIFEST = "manifest.json"
COLUMNS = {"nodes": 3, "corners": 3, "facets": 3, "marks": 2, "kinds": 2, "parts": 1}
ARRAYS = (*COLUMNS, "cells")
ASCENDING = ("facets", "marks", "kinds")  # by their first column
FARTHEST = 1e100  # metres: volumes and areas beyond would overflow


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
    rows = manifest.rows
    sums = manifest.sums
    n_cells = manifest.rows.get("cells", 0)
    if set(rows) != set(ARRAYS) or set(sums) != set(ARRAYS) or manifest.element not in ELEMENTS:
        return False
    if min(rows["nodes"], n_cells, manifest.n_parts) < 1 or rows["corners"] != n_cells:
        return False
    if rows["parts"] != (n_cells if manifest.n_parts > 1 else 0):
        return False
    return all(len(sums[name]) == (1 + n_blocks(n) if n else 0) for name, n in rows.items())


def is_sliced(spec: str) -> bool:
    """Whether `spec` names a folder, as only sliced meshes do."""
    return os.path.isdir(spec)  # also of a name that is too long


def check_sum(rows: np.ndarray) -> int:
    """Of the bytes of a block of rows."""
    return zlib.crc32(memoryview(np.ascontiguousarray(rows)).cast("B"))  # type: ignore[arg-type]


def head_of(path: Path) -> bytes:
    """What precedes the rows in a file."""
    with open(path, "rb") as stream:
        start = stream.read(10)
        return start + stream.read(int.from_bytes(start[8:], "little"))


def header(name: str, element: str, n: int) -> bytes:
    """What precedes n rows of an array, as numpy writes it."""
    columns, kind = shape_of(name, element)
    stream = io.BytesIO()
    write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": (n, columns)})
    return stream.getvalue()


def _without_padding(head: bytes) -> bytes:
    """A header without the blanks at its end, whose number depends on the version of numpy."""
    return head[:8] + head[10:].rstrip()


def shape_of(name: str, element: str) -> tuple[int, str]:
    """Columns and type of an array."""
    return COLUMNS.get(name) or element_named(element).nodes, "<f8" if name == "nodes" else "<i4"


def n_blocks(n_rows: int) -> int:
    """How many blocks these rows are."""
    return -(-n_rows // BLOCK)


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

    def _damaged(self, name: str, how: str = "") -> InputError:
        return InputError(f"cannot read mesh {self.folder}: {name} is damaged{how}; convert the mesh again")

    def _ends(self, name: str) -> tuple[int, ...]:
        """What the whole numbers of an array stay below: all of them, or those of each column."""
        m = self.manifest
        n_facets = len(element_named(m.element).facets)
        names = len(m.facet_tags) + 1
        return {
            "cells": (self.n_nodes,),
            "corners": (RESOLUTION + 1,),
            "facets": (self.n_cells, n_facets, names),
            "marks": (self.n_nodes, len(m.node_tags) + names),
            "kinds": (self.n_cells, len(m.cell_tags)),
            "parts": (m.n_parts,),
        }[name]

    def _check(self, name: str, rows: np.ndarray) -> None:
        """Raises InputError for numbers out of range, or rows out of order."""
        if name == "nodes":
            if not np.abs([rows.min(), rows.max()]).max() <= FARTHEST:  # nor of not-a-number
                raise self._damaged("nodes.npy", f": not all coordinates are within ± {FARTHEST:g} m")
            return
        ends = self._ends(name)
        for column, end in zip(rows.view("<u4").reshape(-1, len(ends)).T, ends):
            if column.max() >= end:  # one below 0 is too large, too
                raise self._damaged(f"{name}.npy", f": not all numbers are within 0 to {end - 1}")
        if name in ASCENDING and (rows[1:, 0] < rows[:-1, 0]).any():
            raise self._damaged(f"{name}.npy", ": its rows do not ascend")

    def _open(self, name: str) -> np.ndarray:
        columns, kind = shape_of(name, self.manifest.element)
        rows = self.manifest.rows[name]
        if not rows:  # nothing can be mapped
            return np.empty((0, columns), kind)
        path = self.folder / f"{name}.npy"
        try:
            head, size = head_of(path), path.stat().st_size
        except OSError as error:
            raise self._damaged(path.name) from error
        usual = _without_padding(head) == _without_padding(header(name, self.manifest.element, rows))
        whole = size == len(head) + rows * columns * np.dtype(kind).itemsize
        if zlib.crc32(head) != self.manifest.sums[name][0] or not (usual and whole):
            raise self._damaged(path.name)
        return np.memmap(path, kind, mode="r", offset=len(head), shape=(rows, columns))

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
        if len(copy):
            self._check(name, copy)
        return copy

    def rows_between(self, name: str, first: int, last: int) -> np.ndarray:
        """The rows whose first column is first … last - 1, of an array in this order."""
        keys = self._arrays[name][:, 0]
        low, high = (int(np.searchsorted(keys, key)) for key in (first, last))
        start = low // BLOCK * BLOCK
        found = self.rows(name, start, min(n_blocks(high) * BLOCK, len(keys)))[low - start : high - start]
        if len(found) and not first <= found[0, 0] <= found[-1, 0] < last:
            raise self._damaged(f"{name}.npy", ": its rows do not ascend")
        return found

    def share(self, name: str, part: int, parts: int) -> tuple[int, int]:
        """The rows of one of `parts` slices of about as many blocks; some may be empty."""
        n = n_blocks(self.manifest.rows[name])
        total = self.manifest.rows[name]
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
