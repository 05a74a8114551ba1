"""Conversion of cells and tags from and to meshio's mesh object. Does not import meshio.

How tags travel:
    .msh          physical groups: volumes -> cell tags, surfaces -> facet tags, others -> node tags
    .vtu .vtk     one byte per cell, `facet_tag:NAME`, bit i set if local facet i has the tag; one byte per
                  cell, `cell_tag:NAME`, or node, `node_tag:NAME`. No extra cells; ParaView can show the tags.
    others        read: point sets, sets and integer marks of cells and facet cells. Not written.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.mesh.elements import ELEMENTS, Element, element_named
from fembench.mesh.facets import locate_facets, nodes_of_facets
from fembench.mesh.mesh import Mesh

FACET_BITS = "facet_tag:"
NODE_BITS = "node_tag:"
CELL_BITS = "cell_tag:"
MARKS = (
    "gmsh:physical",
    "medit:ref",
    "su2:tag",
    "cell_tags",
    "nastran:ref",
    "netgen:index",
    "ugrid:ref",
)  # 0 is no mark
BY_MESHIO = {element.meshio: element for element in ELEMENTS.values()}

Arrays = dict[str, np.ndarray]


def mesh_from(foreign: Any, name: str) -> tuple[Mesh, str]:
    """The checked mesh of a meshio object, and what was left out. Raises InputError.

    Left out are nodes that no cell has, such as the points of a geometry.
    """
    where = f"mesh {name}"
    element, cells = volume_cells(foreign, where)
    points = np.asarray(foreign.points)
    if points.ndim != 2 or points.shape[1] != 3:
        raise InputError(
            f"{where}: points of shape {points.shape}, a 2-D mesh? expected three coordinates per node"
        )
    node_tags, facet_tags, cell_tags = _tags(foreign, element, cells, where)
    used = _used(points, cells, [*node_tags.values(), *facet_tags.values()])
    if used.all():
        return Mesh.create(points, cells, element.name, name, node_tags, facet_tags, cell_tags), ""
    new = np.cumsum(used) - 1  # old number -> new one
    node_tags = {tag: new[kept] for tag, nodes in node_tags.items() if len(kept := nodes[used[nodes]])}
    facet_tags = {tag: new[facets] for tag, facets in facet_tags.items() if used[facets].all()}
    made = Mesh.create(points[used], new[cells], element.name, name, node_tags, facet_tags, cell_tags)
    return made, f"{where}: {plural(int((~used).sum()), 'node')} of {len(points)}, in no cell, left out"


def _used(points: np.ndarray, cells: np.ndarray, tags: list[np.ndarray]) -> np.ndarray:
    """(n_nodes,) whether a node is in a cell; all if a number is that of no node."""
    numbers = np.concatenate([np.ravel(a) for a in (cells, *tags)])
    used = np.ones(len(points), bool)
    if len(cells) and numbers.min() >= 0 and numbers.max() < len(points):
        used[:] = False
        used[cells] = True
    return used


def volume_cells(foreign: Any, where: str) -> tuple[Element, np.ndarray]:
    """The element and its cells in the file's order. Raises InputError for several kinds."""
    counts: dict[str, int] = defaultdict(int)
    for block in foreign.cells:
        if block.dim == 3 and len(block):
            counts[block.type] += len(block)
    if not counts:
        flat = [f"{len(block)} {block.type}" for block in foreign.cells if len(block)]
        what = f"a 2-D mesh ({', '.join(flat[:3])} cells only)" if flat else "no cells"
        raise InputError(f"{where}: {what}; expected tetrahedra or hexahedra")
    strange = sorted(set(counts) - set(BY_MESHIO))
    if strange:
        order = "higher-order" if strange[0].rstrip("0123456789") in BY_MESHIO else "unsupported"
        found = f"{counts[strange[0]]} {strange[0]}"
        raise InputError(f"{where}: {order} cells ({found}); expected 4-node tetra or 8-node hexahedron")
    if len(counts) > 1:
        mixture = " and ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        raise InputError(f"{where}: mixed cells ({mixture}); expected one kind")
    kind = next(iter(counts))
    return BY_MESHIO[kind], _joined(
        [block.data for block in foreign.cells if block.type == kind and len(block)], f"{where}: {kind} cells"
    )


def _joined(parts: list[np.ndarray], what: str) -> np.ndarray:
    """Rows of all parts. Raises InputError if their lengths differ."""
    if len({np.shape(part)[1:] for part in parts}) > 1:
        raise InputError(f"{what} with different numbers of nodes; expected one")
    return np.concatenate(parts)


def _tags(foreign: Any, element: Element, cells: np.ndarray, where: str) -> tuple[Arrays, Arrays, Arrays]:
    """Tags of nodes, facets and cells. Raises InputError for facets of a wrong shape."""
    nodes, facets, solids = (defaultdict[str, list[np.ndarray]](list) for _ in range(3))
    first = _first_cells(foreign, element)
    for block, tag, members in _marked(foreign):
        if block.dim < 2:
            nodes[tag].append(block.data[members].reshape(-1))
        elif block.dim == 2:
            if block.type != element.facet_meshio:
                raise InputError(f"{where}, tag '{tag}': {block.type} cells are no facets of {element.name}")
            facets[tag].append(block.data[members])
        elif block.type == element.meshio:
            solids[tag].append(first[id(block)] + members)
    for tag, members in (foreign.point_sets or {}).items():
        nodes[tag].append(np.asarray(members, dtype=np.int64).reshape(-1))
    for tag, bits in _bits(foreign.point_data, NODE_BITS):
        nodes[tag].append(np.flatnonzero(bits))
    for tag, blocks in _bits(foreign.cell_data, FACET_BITS):
        facets[tag].append(_facets_of_bits(element, cells, _of_cells(foreign, element, blocks)))
    for tag, blocks in _bits(foreign.cell_data, CELL_BITS):
        solids[tag].append(np.flatnonzero(_of_cells(foreign, element, blocks)))
    return (
        {t: np.concatenate(parts) for t, parts in nodes.items()},
        {t: _joined(parts, f"{where}, tag '{t}': facets") for t, parts in facets.items()},
        {t: np.concatenate(parts) for t, parts in solids.items()},
    )


def _first_cells(foreign: Any, element: Element) -> dict[int, int]:
    """id of each block of volume cells -> the number of its first cell."""
    blocks = [block for block in foreign.cells if block.type == element.meshio]
    ends = np.cumsum([0, *map(len, blocks)]).tolist()
    return {id(block): end for block, end in zip(blocks, ends)}


def _of_cells(foreign: Any, element: Element, blocks: Any) -> np.ndarray:
    """(n_cells,) one number per volume cell, from those of every block."""
    own = [np.ravel(b) for b, block in zip(blocks, foreign.cells) if block.type == element.meshio]
    return np.concatenate(own)


def _marked(foreign: Any) -> Iterator[tuple[Any, str, np.ndarray]]:
    """(block of cells, tag, its cells in the block) for every named set and mark."""
    sets = {
        tag: members
        for tag, members in (foreign.cell_sets or {}).items()
        if not tag.startswith("gmsh:") and len(members) == len(foreign.cells)
    }
    names = {(int(v[0]), int(v[1])): tag for tag, v in (foreign.field_data or {}).items() if np.size(v) == 2}
    for k, block in enumerate(foreign.cells):
        for tag, members in sets.items():
            if members[k] is not None and len(members[k]):
                yield block, tag, np.asarray(members[k], dtype=np.int64)
        for marks in (np.asarray(foreign.cell_data[key][k]) for key in MARKS if key in foreign.cell_data):
            for mark in np.unique(marks[marks != 0]) if marks.ndim == 1 else ():
                yield block, names.get((int(mark), block.dim), str(int(mark))), np.flatnonzero(marks == mark)


def _bits(data: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """(tag, array) of the data arrays whose names begin with `prefix`."""
    for key, array in (data or {}).items():
        if key.startswith(prefix):
            yield key[len(prefix) :], array


def _facets_of_bits(element: Element, cells: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """(n, 3 | 4): the facets whose bit is set in their cell's byte."""
    cell, facet = np.nonzero(bits.astype(np.int64)[:, None] >> np.arange(len(element.facets)) & 1)
    return nodes_of_facets(cells, element.name, cell, facet)


def bits_of_tags(mesh: Mesh) -> tuple[Arrays, Arrays]:
    """Point data and cell data that carry the tags: (n_nodes,) and (n_cells,) uint8 each."""
    point_data, cell_data = {}, {}
    for tag, nodes in mesh.node_tags.items():
        point_data[NODE_BITS + tag] = np.isin(np.arange(mesh.n_nodes), nodes).astype(np.uint8)
    for tag, facets in mesh.facet_tags.items():
        cell, facet = locate_facets(mesh.cells, mesh.element, facets)
        bits = np.zeros(mesh.n_cells, dtype=np.uint8)
        np.bitwise_or.at(bits, cell, (1 << facet).astype(np.uint8))
        cell_data[FACET_BITS + tag] = bits
    for tag, cells in mesh.cell_tags.items():
        cell_data[CELL_BITS + tag] = np.isin(np.arange(mesh.n_cells), cells).astype(np.uint8)
    return point_data, cell_data


def physical_groups(mesh: Mesh) -> tuple[list[tuple[str, np.ndarray]], list[np.ndarray], Arrays]:
    """Blocks of cells, physical numbers, names -> (number, dimension): cells, then tags.

    Raises InputError for one name of two kinds, and for cells with two tags.
    """
    kinds = {"nodes": mesh.node_tags, "facets": mesh.facet_tags, "cells": mesh.cell_tags}
    for a, b in combinations(kinds, 2):
        for tag in sorted(kinds[a].keys() & kinds[b].keys()):
            raise _not_in_msh(f"tag '{tag}' names both {a} and {b}")
    element = element_named(mesh.element)
    solid = np.zeros(mesh.n_cells, dtype=np.int32)
    blocks, names = [(element.meshio, mesh.cells)], {}
    for number, (tag, cells) in enumerate(sorted(mesh.cell_tags.items()), 1):
        if solid[cells].any():
            raise _not_in_msh(f"some cells of tag '{tag}' have another tag")
        solid[cells], names[tag] = number, np.array([number, 3])
    for tag, facets in sorted(mesh.facet_tags.items()):
        blocks.append((element.facet_meshio, facets))
        names[tag] = np.array([len(blocks), 2])
    for tag, nodes in sorted(mesh.node_tags.items()):
        blocks.append(("vertex", nodes[:, None]))
        names[tag] = np.array([len(blocks), 0])
    others = [np.full(len(data), number, dtype=np.int32) for number, (_, data) in enumerate(blocks[1:], 2)]
    return blocks, [solid, *others], names


def _not_in_msh(what: str) -> InputError:
    return InputError(f"{what}, which a .msh file cannot contain; expected .vtu")
