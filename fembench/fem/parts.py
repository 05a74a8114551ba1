"""Parts of a body that share no facet: each must be held against rigid motion.

Cells joined through facets move as one rigid body. Parts that meet in single nodes or along edges pass
forces to each other, but a hinge passes no moment. So a part can move if the supports and the nodes that it
shares with others leave it a motion. Six unknowns per part: `q`, the part's rigid motion.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fembench.base.errors import InputError
from fembench.fem.boundary import Geometry, fixed_dofs
from fembench.fem.checks import text
from fembench.fem.extent import Extent
from fembench.fem.problem import ProblemSpec
from fembench.fem.rigid import RANK_TOLERANCE, rigid_modes

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST = 200  # hinged parts that are examined together: a dense system of 6 unknowns each


@dataclass(frozen=True, slots=True)
class BodyParts:
    """Every node of every part, once per part; a shared node appears in several. n_parts at least 2."""

    part: Ints  # (n_members,) ascending
    node: Ints  # (n_members,)
    modes: Array  # (n_members, 3, 6) rigid motions about the part's centre, rotations divided by its radius
    centre: Array  # (n_parts, 3) m
    n_nodes: Ints  # (n_parts,)
    fixed: NDArray[np.bool_]  # (n_members, 3) prescribed dofs


def check_parts(spec: ProblemSpec, geometry: Geometry, extent: Extent, part_of_cell: Ints) -> None:
    """Raise InputError if a part of the body can move though the body as a whole is held."""
    if not part_of_cell.any():
        return
    parts = _parts(spec, geometry, extent, part_of_cell)
    supports, loose = _not_held(parts)
    if not len(loose):
        return
    kind = "unconnected parts" if len(parts.node) == len(geometry.x) else "parts that share no facet"
    where = f"problem '{spec.name}': {len(parts.n_nodes)} {kind}"
    if len(loose) > MOST:
        raise InputError(
            f"{where}, {len(loose)} of them not held on their own; expected supports for every part,"
            f" or at most {MOST} parts that lean on others"
        )
    moving = _moving(parts, supports, loose)
    if moving is not None:
        raise InputError(
            f"{where}; part {moving + 1} ({parts.n_nodes[moving]} nodes, around {text(parts.centre[moving])})"
            " can still move; expected supports for every part, or cells joined by common facets"
        )


def _parts(spec: ProblemSpec, geometry: Geometry, extent: Extent, part_of_cell: Ints) -> BodyParts:
    n_nodes, n_parts = len(geometry.x), int(part_of_cell.max()) + 1
    numbers = np.unique(part_of_cell[:, None] * n_nodes + geometry.cells)
    part, node = np.divmod(numbers, n_nodes)
    count = np.bincount(part, minlength=n_parts)
    x = geometry.x[node]
    centre = np.stack([np.bincount(part, x[:, k]) for k in range(3)], axis=1) / count[:, None]
    arm = x - centre[part]
    radius = np.zeros(n_parts)
    np.maximum.at(radius, part, np.linalg.norm(arm, axis=1))
    return BodyParts(
        part,
        node,
        rigid_modes(arm / radius[part][:, None], np.zeros(3)),
        centre,
        count,
        fixed_dofs(spec, geometry, extent)[0][node],
    )


def _not_held(parts: BodyParts) -> tuple[Array, Ints]:
    """(n_parts, 6, 6) what supports and held neighbours withstand; the parts that this does not hold.

    A part that is held supports the nodes that it shares with others, and so on.
    """
    fixed = parts.fixed
    while True:
        G = _mean_gram(parts, fixed)
        values = np.linalg.eigvalsh(G)
        held = values[:, 0] > RANK_TOLERANCE
        anchored = np.zeros(parts.node.max() + 1, dtype=bool)
        anchored[parts.node[held[parts.part]]] = True
        grown = parts.fixed | anchored[parts.node][:, None]
        if np.array_equal(grown, fixed):
            return G, np.flatnonzero(~held)
        fixed = grown


def _mean_gram(parts: BodyParts, fixed: NDArray[np.bool_]) -> Array:
    """(n_parts, 6, 6) the products of each part's modes over its fixed dofs, divided by their number."""
    member, axis = np.nonzero(fixed)
    rows, owner = parts.modes[member, axis], parts.part[member]
    G = np.zeros((len(parts.n_nodes), 6, 6))
    np.add.at(G, owner, rows[:, :, None] * rows[:, None, :])
    return G / np.maximum(np.bincount(owner, minlength=len(G)), 1)[:, None, None]


def _moving(parts: BodyParts, supports: Array, loose: Ints) -> int | None:
    """The loose part that moves most in the motions that are left; None if there are none."""
    n = len(loose)
    G = np.zeros((n, n, 6, 6))
    G[np.arange(n), np.arange(n)] = supports[loose]
    _join(G, parts, loose)
    values, vectors = np.linalg.eigh(G.transpose(0, 2, 1, 3).reshape(6 * n, 6 * n))
    free = vectors[:, values <= RANK_TOLERANCE]
    if not free.size:
        return None
    size = np.square(free).reshape(n, -1).sum(axis=1)
    return int(loose[np.argmax(size > 0.999 * size.max())])


def _join(G: Array, parts: BodyParts, loose: Ints) -> None:
    """Add, in place, that loose parts move alike at their common nodes: (M_a q_a - M_b q_b) / sqrt(nodes)."""
    index = np.full(len(parts.n_nodes), -1)
    index[loose] = np.arange(len(loose))
    members = np.flatnonzero(index[parts.part] >= 0)
    members = members[np.argsort(parts.node[members], kind="stable")]
    first, second = members[:-1], members[1:]
    common = parts.node[first] == parts.node[second]
    first, second = first[common], second[common]
    a, b = index[parts.part[first]], index[parts.part[second]]
    _, pair, count = np.unique(a * len(loose) + b, return_inverse=True, return_counts=True)
    weight = 1.0 / count[pair]
    modes = ((a, parts.modes[first]), (b, -parts.modes[second]))
    for i, left in modes:
        for j, right in modes:
            np.add.at(G, (i, j), np.einsum("nki,nkj,n->nij", left, right, weight))
