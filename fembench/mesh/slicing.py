"""Write a mesh into a folder of slices, piece by piece: a box is never held whole."""

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fembench.base.config import encode
from fembench.base.errors import InputError
from fembench.base.files import atomic_folder, write_atomic
from fembench.mesh.box import Box, cells_between, check_numbers, face_slots, nodes_between
from fembench.mesh.facets import NONE, facet_parts, locate_facets
from fembench.mesh.mesh import Mesh, content_hash
from fembench.mesh.sliced import (
    BOUNDARY,
    FORMAT,
    MANIFEST,
    Manifest,
    blocks,
    check_sum,
    head_of,
    header,
    in_steps,
    lowest_corners,
    sealed,
    shape_of,
    tagged,
)

PIECE = 1 << 17  # rows that are converted at once
Pieces = Callable[[], Iterable[np.ndarray]]


@dataclass(frozen=True, eq=False)
class Source:
    """A mesh to be written."""

    name: str
    element: str
    n_nodes: int
    n_cells: int
    nodes: Pieces  # coordinates, in order
    cells: Pieces
    node_tags: Mapping[str, np.ndarray]  # (n,) nodes, ascending
    facet_tags: Mapping[str, np.ndarray]  # (n, 2) cell and local facet, ascending
    boundary: np.ndarray  # (n, 2)
    parts: np.ndarray  # (n_cells,) the connected part of each cell; empty if there is one
    cell_tags: Mapping[str, np.ndarray] = field(default_factory=dict)  # (n,) cells, ascending


def source_of_mesh(mesh: Mesh) -> Source:
    """A mesh in memory. Raises InputError if it has a tag of the reserved name."""
    if BOUNDARY in {*mesh.node_tags, *mesh.facet_tags}:
        raise InputError(
            f"mesh '{mesh.name}': tag '{BOUNDARY}' is reserved for the whole boundary; rename it"
        )
    parts = facet_parts(mesh.behind)
    return Source(
        mesh.name,
        mesh.element,
        mesh.n_nodes,
        mesh.n_cells,
        lambda: _pieces(mesh.x),
        lambda: _pieces(mesh.cells),
        mesh.node_tags,
        {
            tag: np.column_stack(locate_facets(mesh.cells, mesh.element, facets))
            for tag, facets in mesh.facet_tags.items()
        },
        np.argwhere(mesh.behind == NONE),
        parts if parts.any() else parts[:0],
        mesh.cell_tags,
    )


def source_of_box(plan: Box) -> Source:
    """A box, generated while it is written. Raises InputError beyond 32 bits."""
    check_numbers(plan)
    faces = face_slots(plan)
    boundary = np.concatenate(list(faces.values()))
    nz = plan.cells[2]
    return Source(
        plan.title,
        plan.element,
        plan.n_nodes,
        plan.n_cells,
        lambda: (nodes_between(plan, k, k + 1) for k in range(nz + 1)),
        lambda: (cells_between(plan, k, k + 1) for k in range(nz)),
        {},
        faces,
        boundary[np.lexsort(boundary.T[::-1])],
        np.empty(0, np.int32),
    )


def write_sliced(source: Source, folder: Path | str) -> str:
    """Write the folder, whole or not at all, replacing a mesh; return the hash.

    Raises InputError, also for a folder that is no mesh.
    """
    if Path(folder).exists() and not (Path(folder) / MANIFEST).is_file():
        raise InputError(f"cannot write mesh {folder}: there is something else; expected a new name")
    with atomic_folder(folder) as place:
        manifest = _fill(source, place)
        write_atomic(place / MANIFEST, encode(manifest))
    return manifest.hash


def _fill(source: Source, place: Path) -> Manifest:
    """Write the arrays; what there is to say of them."""
    arrays = {
        "nodes": _stored(place, "nodes", source, source.n_nodes, source.nodes()),
        "cells": _stored(place, "cells", source, source.n_cells, source.cells()),
    }
    x, cells = arrays["nodes"], arrays["cells"]
    facets = _numbered([*source.facet_tags.values(), source.boundary])
    facet_tags = {tag: tagged(cells, source.element, rows) for tag, rows in source.facet_tags.items()}
    boundary = tagged(cells, source.element, source.boundary)
    marks = [*source.node_tags.values(), *map(np.unique, (*facet_tags.values(), boundary))]
    kinds = [cells[:, None] for cells in source.cell_tags.values()]
    tables = {
        "corners": (source.n_cells, _corners(x, cells)),
        "facets": (len(facets), [facets]),
        "marks": (sum(map(len, marks)), [_numbered([nodes[:, None] for nodes in marks])]),
        "kinds": (sum(map(len, kinds)), [_numbered(kinds)] if kinds else []),
        "parts": (len(source.parts), [source.parts[:, None]]),
    }
    arrays |= {name: _stored(place, name, source, *table) for name, table in tables.items()}
    return sealed(
        Manifest(
            format=FORMAT,
            name=source.name,
            element=source.element,
            hash=content_hash(source.element, x, cells, source.node_tags, facet_tags, source.cell_tags),
            rows={name: len(array) for name, array in arrays.items()},
            n_parts=int(source.parts.max(initial=0)) + 1,
            node_tags=tuple(source.node_tags),
            facet_tags=tuple(source.facet_tags),
            cell_tags=tuple(source.cell_tags),
            sums={name: _sums(place / f"{name}.npy", array) for name, array in arrays.items()},
        )
    )


def _stored(place: Path, name: str, source: Source, n: int, pieces: Iterable[np.ndarray]) -> np.ndarray:
    """An array of n rows in a file, filled piece by piece."""
    columns, kind = shape_of(name, source.element)
    if not n:
        return np.empty((0, columns), kind)
    path = place / f"{name}.npy"
    with open(path, "wb") as stream:  # mapped, a full disk would end the process
        stream.write(header(name, source.element, n))
        for piece in pieces:
            stream.write(np.ascontiguousarray(piece, kind).data)
    return np.load(path, mmap_mode="r")


def _sums(path: Path, array: np.ndarray) -> tuple[int, ...]:
    if not len(array):
        return ()
    return zlib.crc32(head_of(path)), *(check_sum(array[b]) for b in blocks(len(array)))


def _pieces(array: np.ndarray) -> Iterable[np.ndarray]:
    return (array[low : low + PIECE] for low in range(0, len(array), PIECE))


def _corners(x: np.ndarray, cells: np.ndarray) -> Iterable[np.ndarray]:
    """Pieces of the corners in steps."""
    ends = [(c.min(axis=0), c.max(axis=0)) for c in (lowest_corners(x, piece) for piece in _pieces(cells))]
    low = np.min([a for a, _ in ends], axis=0)
    high = np.max([b for _, b in ends], axis=0)
    return (in_steps(lowest_corners(x, piece), low, high) for piece in _pieces(cells))


def _numbered(tables: list[np.ndarray]) -> np.ndarray:
    """(n, columns + 1): the rows of all tables, sorted, their table last."""
    rows = np.concatenate([np.insert(table, table.shape[1], k, axis=1) for k, table in enumerate(tables)])
    return rows[np.lexsort(rows.T[::-1])]
