"""Meshes and a norm that the tests of `fem` share."""

from dataclasses import dataclass

import numpy as np

from fembench.fem.fields import l2_squares
from fembench.fem.parts import whole_mesh
from fembench.mesh.box import box
from fembench.mesh.mesh import Mesh

ELEMENTS = ("tet4", "hex8")
LAM, MU = 1.3, 0.7


def distorted(element, cells=(4, 3, 4), amount=0.15, seed=1, lengths=(1.0, 0.5, 1.0)):
    """A box whose interior nodes are moved by up to `amount` of a cell's edge; the boundary stays."""
    mesh = box(cells=cells, element=element, lengths=lengths)
    inside = np.all((mesh.x > 1e-9) & (mesh.x < np.array(lengths) - 1e-9), axis=1)
    edge = np.array(lengths) / cells
    x = mesh.x.copy()
    x[inside] += amount * edge * np.random.default_rng(seed).uniform(-1, 1, (inside.sum(), 3))
    return Mesh.create(x, mesh.cells, element)


def skewed_cell(element, seed=0):
    """(1, npc, 3) one cell, well away from regular."""
    mesh = box(cells=(1, 1, 1), element=element, lengths=(1.0, 1.0, 1.0))
    corners = mesh.x[mesh.cells[:1]]
    return corners + 0.15 * np.random.default_rng(seed).uniform(-1, 1, corners.shape)


def l2_error(mesh, u, exact):
    """|u - exact| / |exact| in the L2 norm of a whole mesh."""
    error, norm = l2_squares(mesh.x, mesh.cells, mesh.element, u, exact)
    return np.sqrt(error / norm)


@dataclass
class Part:
    """One rank's share of a whole mesh, with what `boundary.Geometry` asks for."""

    element: str
    x: np.ndarray
    cells: np.ndarray
    node_tags: dict
    facet_tags: dict
    owned_nodes: np.ndarray
    global_nodes: np.ndarray
    cell_tags: dict


def parts_of(spec, mesh, n_parts):
    """The mesh in slabs of cells, as a distribution would hand them out."""
    whole = whole_mesh(spec, mesh)
    part_of_cell = np.arange(len(whole.cells)) * n_parts // len(whole.cells)
    owner = np.full(len(whole.x), n_parts)
    for p in reversed(range(n_parts)):
        owner[whole.cells[part_of_cell == p]] = p
    facets = {name: _facets_by_part(whole, rows, part_of_cell) for name, rows in whole.facet_tags.items()}
    return whole, [_part(whole, part_of_cell, owner, facets, p) for p in range(n_parts)]


def _facets_by_part(whole, facets, part_of_cell):
    """(facets, the part of the first cell that holds all nodes of each)."""
    sets = [set(cell) for cell in whole.cells.tolist()]
    cells = [next(c for c, nodes in enumerate(sets) if nodes >= set(f)) for f in facets.tolist()]
    return facets, part_of_cell[np.array(cells, dtype=int)]


def _part(whole, part_of_cell, owner, facets, p):
    cells = whole.cells[part_of_cell == p]
    nodes, local = np.unique(cells, return_inverse=True)
    to_local = np.full(len(whole.x), -1, dtype=np.int32)
    to_local[nodes] = np.arange(len(nodes))
    return Part(
        whole.element,
        whole.x[nodes],
        local.reshape(cells.shape).astype(np.int32),
        {name: mask[nodes] for name, mask in whole.node_tags.items()},
        {name: to_local[rows[part == p]] for name, (rows, part) in facets.items()},
        owner[nodes] == p,
        nodes,
        {name: mask[part_of_cell == p] for name, mask in whole.cell_tags.items()},
    )
