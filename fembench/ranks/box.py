"""A box in parallel: every rank generates only its own cells.

Tags and the boundary come from grid coordinates. The hash is that of the specification,
because no rank has the whole content; it begins with "box-", so it is never taken for
the hash of a mesh's content.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.kernels.backend import kernels
from fembench.mesh.adjacency import NONE, facet_neighbours
from fembench.mesh.box import FACES, Box, check_memory
from fembench.mesh.box_part import local_box
from fembench.mesh.elements import element_named
from fembench.mesh.presets import box_named
from fembench.mesh.sliced import BOUNDARY
from fembench.ranks.comm import Comm
from fembench.ranks.piece import Piece, TagMasks
from fembench.ranks.subdomain import Subdomain


def plan_of(spec: str) -> Box:
    """The box that `spec` names. Raises InputError if it names a file."""
    plan = box_named(spec)
    if plan is None:
        raise InputError(
            f"mesh '{spec}': partitioner 'blocks' works only for boxes; use metis or rcb for a file"
        )
    return plan


def box_hash(plan: Box) -> str:
    """The identity of the box, independent of the number of parts."""
    text = f"{plan.cells} {plan.element} {plan.lengths}"
    return "box-" + hashlib.sha256(text.encode()).hexdigest()[:56]


def box_piece(plan: Box, targets: tuple[float, ...], rank: int) -> Piece:
    """The piece of one rank, made without communication."""
    check_memory(plan, targets[rank])
    part = local_box(plan, targets, rank)
    facet_tags = dict(part.facet_tags)
    node_tags = {name: _on_face(plan, name, part.x) for name in FACES}
    facet_tags[BOUNDARY] = np.concatenate(list(facet_tags.values()))
    node_tags[BOUNDARY] = np.unique(np.concatenate(list(node_tags.values())))
    return Piece(
        element=plan.element,
        x=part.x,
        cells=part.cells,
        global_nodes=part.global_nodes,
        global_cells=part.global_cells,
        node_tags=TagMasks(len(part.x), node_tags),
        facet_tags=facet_tags,
    )


def _on_face(plan: Box, name: str, x: F64) -> NDArray[np.intp]:
    """(n,) the nodes on face x0 … z1; exact, as coordinates are."""
    axis = "xyz".index(name[0])
    return np.flatnonzero(x[:, axis] == (0.0 if name[1] == "0" else plan.lengths[axis]))


def count_cut(comm: Comm, sub: Subdomain) -> int:
    """Facets between cells of different ranks; the boundary must be tagged. Collective.

    A facet that is cut has shared nodes only, and one cell on this rank.
    """
    shared = sub.sharers > 1
    corners = element_named(sub.element).facets.shape[1]
    near = sub.cells[kernels.cells_meeting(sub.cells, shared, corners)]
    alone = facet_neighbours(near, sub.element) == NONE
    facets = element_named(sub.element).facets
    within = shared[near][:, facets].all(axis=2) & alone
    outside = shared[sub.facet_tags[BOUNDARY]].all(axis=1).sum()
    return int(comm.allreduce(int(within.sum() - outside))) // 2
