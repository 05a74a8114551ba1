"""Parts of a body that share no facet: each must be held against rigid motion.

Cells joined through facets move as one rigid body. Parts that meet in single nodes or
along edges pass forces to each other, but a hinge passes no moment. So a part can move
if the supports and the nodes that it shares with others leave it a motion. Six unknowns
per part: `q`, the part's rigid motion.

A whole mesh, tags prepared for selections, to be distributed or used serially.

A whole mesh is also solved here directly, with scipy: the reference for every parallel run.
"""

from typing import TYPE_CHECKING, Protocol

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from fembench.base.arrays import F64, I32, I64, Mask
from fembench.base.errors import InputError
from fembench.fem.boundary import Nodes, fixed_dofs, prescribed, right_hand_side
from fembench.fem.checks import text
from fembench.fem.elements import element_stiffness
from fembench.fem.extent import RANK_TOLERANCE, Extent, extent_of, rigid_modes
from fembench.fem.materials import Modulus, lame
from fembench.fem.problem import ProblemSpec, needs_boundary
from fembench.fem.selection import BOUNDARY
from fembench.fem.survey import check, survey
from fembench.mesh.facets import boundary_facets, facet_parts, nodes_of_tags
from fembench.mesh.mesh import Mesh
from fembench.mesh.sliced import Alone, World

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


MOST = 200  # hinged parts that are examined together: a dense system of 6 unknowns each


class Solid(Nodes, Protocol):
    """The nodes and cells of one rank, or of a whole mesh."""

    @property
    def cells(self) -> I32: ...  # (n_cells, npc)


class BodyParts(Struct, frozen=True):
    """The parts, and the nodes that several of them share: each once per part, ascending."""

    part: I64  # (n_members,)
    node: I64  # (n_members,)
    modes: F64  # (n_members, 3, 6) rigid motions about the part's centre, rotations divided by its radius
    fixed: Mask  # (n_members, 3) prescribed dofs
    centre: F64  # (n_parts, 3) m
    n_nodes: I64  # (n_parts,)
    gram: F64  # (n_parts, 6, 6) the products of each part's modes over all its prescribed dofs
    n_fixed: I64  # (n_parts,) these dofs


def check_parts(
    spec: ProblemSpec,
    body: Solid,
    extent: Extent,
    part_of_cell: NDArray[np.integer],
    world: World | None = None,
    numbers: NDArray[np.integer] | None = None,
) -> None:
    """Raise InputError if a part of the body can move though the body as a whole is held.

    On several ranks: `world`, and the global `numbers` of its nodes. Collective.
    """
    world = world or Alone()
    n_parts = int(world.max(np.array([part_of_cell.max(initial=0)]))[0]) + 1
    if n_parts == 1:
        return
    numbers = np.arange(len(body.x)) if numbers is None else numbers
    parts = _parts(spec, body, extent, part_of_cell, n_parts, world, numbers)
    supports, loose = _not_held(parts)
    if not len(loose):
        return
    kind = "unconnected parts" if not len(parts.node) else "parts that share no facet"
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


def _parts(
    spec: ProblemSpec,
    body: Solid,
    extent: Extent,
    part_of_cell: NDArray[np.integer],
    n_parts: int,
    world: World,
    numbers: NDArray[np.integer],
) -> BodyParts:
    own = np.unique(part_of_cell[:, None].astype(np.int64) * len(body.x) + body.cells)
    part, node = np.divmod(own, len(body.x))
    numbers = numbers.astype(np.int64)
    first, holders = world.holders(n_parts * numbers[node] + part)
    x = body.x[node]
    count = world.sum(np.bincount(part[first], minlength=n_parts))
    moments = [np.bincount(part[first], x[first, k], n_parts) for k in range(3)]
    centre = world.sum(np.stack(moments, axis=1)) / np.maximum(count, 1)[:, None]
    arm = x - centre[part]
    radius = np.zeros(n_parts)
    np.maximum.at(radius, part, np.linalg.norm(arm, axis=1))
    modes = rigid_modes(arm / world.max(radius)[part][:, None], np.zeros(3))
    fixed = fixed_dofs(spec, body, extent)[node]
    gram, n_fixed = _gram(part, modes, fixed & first[:, None], n_parts)
    # another part holds the node, here or on another rank that holds it
    common = (np.bincount(node)[node] > 1) | (holders < world.holders(numbers)[1][node])
    rows = np.column_stack([numbers[node], part, fixed, modes.reshape(len(part), 18)])
    rows = np.unique(world.rows(rows[common]), axis=0)
    _, shared = np.unique(rows[:, 0], return_inverse=True)
    return BodyParts(
        rows[:, 1].astype(np.int64),
        shared.reshape(-1),
        rows[:, 5:].reshape(-1, 3, 6),
        rows[:, 2:5] > 0,
        centre,
        count,
        world.sum(gram),
        world.sum(n_fixed),
    )


def _not_held(parts: BodyParts) -> tuple[F64, I64]:
    """(n_parts, 6, 6) what supports and held neighbours withstand; parts not held.

    A part that is held supports the nodes that it shares with others, and so on.
    """
    fixed = parts.fixed
    while True:
        gram, count = _gram(parts.part, parts.modes, fixed & ~parts.fixed, len(parts.n_nodes))
        G = (parts.gram + gram) / np.maximum(parts.n_fixed + count, 1)[:, None, None]
        values = np.linalg.eigvalsh(G)
        held = values[:, 0] > RANK_TOLERANCE
        anchored = np.zeros(parts.node.max(initial=0) + 1, dtype=bool)
        anchored[parts.node[held[parts.part]]] = True
        grown = parts.fixed | anchored[parts.node][:, None]
        if np.array_equal(grown, fixed):
            return G, np.flatnonzero(~held)
        fixed = grown


def _gram(part: I64, modes: F64, fixed: Mask, n_parts: int) -> tuple[F64, I64]:
    """(n_parts, 6, 6) products of each part's modes over fixed dofs, (n_parts,) counts."""
    member, axis = np.nonzero(fixed)
    rows, owner = modes[member, axis], part[member]
    G = np.zeros((n_parts, 6, 6))
    np.add.at(G, owner, rows[:, :, None] * rows[:, None, :])
    return G, np.bincount(owner, minlength=n_parts)


def _moving(parts: BodyParts, supports: F64, loose: I64) -> int | None:
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


def _join(G: F64, parts: BodyParts, loose: I64) -> None:
    """Add, in place, for common nodes of loose parts: (M_a q_a - M_b q_b) / sqrt(nodes)."""
    index = np.full(len(parts.n_nodes), -1)
    index[loose] = np.arange(len(loose))
    members = np.flatnonzero(index[parts.part] >= 0)
    members = members[np.argsort(parts.node[members], kind="stable")]
    first, second = members[:-1], members[1:]
    common = parts.node[first] == parts.node[second]
    first, second = first[common], second[common]
    a = index[parts.part[first]]
    b = index[parts.part[second]]
    _, pair, count = np.unique(a * len(loose) + b, return_inverse=True, return_counts=True)
    weight = 1.0 / count[pair]
    modes = ((a, parts.modes[first]), (b, -parts.modes[second]))
    for i, left in modes:
        for j, right in modes:
            np.add.at(G, (i, j), np.einsum("nki,nkj,n->nij", left, right, weight))


class WholeMesh(Struct, frozen=True):
    """A `boundary.Geometry` that owns every node."""

    element: str
    x: F64  # (n_nodes, 3)
    cells: I32  # (n_cells, npc)
    node_tags: dict[str, Mask]  # (n_nodes,) each; one for every facet tag too
    facet_tags: dict[str, I32]  # (k, 3|4) each; "boundary" where the problem needs it
    owned_nodes: Mask  # (n_nodes,), all True
    behind: I32  # (n_cells, n_facets) of `facet_neighbours`
    cell_tags: dict[str, Mask] = field(default_factory=dict)  # (n_cells,) each

    @property
    def extent(self) -> Extent:
        """The bounding box."""
        return extent_of(self.x)


def whole_mesh(spec: ProblemSpec, mesh: Mesh) -> WholeMesh:
    """The mesh with the tags that a problem's selections need."""
    facet_tags = dict(mesh.facet_tags)
    if needs_boundary(spec):
        if BOUNDARY in facet_tags or BOUNDARY in mesh.node_tags:
            raise InputError(
                f"mesh '{mesh.name}' has its own tag '{BOUNDARY}', which problem '{spec.name}' needs"
                " for the mesh's whole boundary; rename it"
            )
        facet_tags[BOUNDARY] = boundary_facets(mesh.cells, mesh.element, mesh.behind)[0]
    tagged = nodes_of_tags(mesh.node_tags, facet_tags)
    node_tags = {name: _mask(nodes, mesh.n_nodes) for name, nodes in tagged.items()}
    owned = np.ones(mesh.n_nodes, dtype=bool)
    cell_tags = {name: _mask(cells, mesh.n_cells) for name, cells in mesh.cell_tags.items()}
    return WholeMesh(mesh.element, mesh.x, mesh.cells, node_tags, facet_tags, owned, mesh.behind, cell_tags)


def check_whole(spec: ProblemSpec, geometry: WholeMesh) -> None:
    """Raise InputError if the problem does not fit the mesh or lets a part of it move."""
    check(spec, survey(spec, geometry, geometry.extent))
    check_parts(spec, geometry, geometry.extent, facet_parts(geometry.behind))


def _mask(members: I32, n: int) -> Mask:
    mask = np.zeros(n, dtype=bool)
    mask[members] = True
    return mask


def assembled(x: F64, cells: I32, element: str, lam: Modulus, mu: Modulus) -> "csr_matrix":
    """The stiffness matrix of the unconstrained body, 3 n_nodes square, N/m."""
    from scipy.sparse import csr_matrix

    ke = element_stiffness(x[cells], element, lam, mu)
    dofs = (3 * cells[:, :, None] + np.arange(3)).reshape(len(cells), -1)
    rows = np.broadcast_to(dofs[:, :, None], ke.shape)
    columns = np.broadcast_to(dofs[:, None, :], ke.shape)
    return csr_matrix((ke.ravel(), (rows.ravel(), columns.ravel())), shape=(x.size, x.size))


def solve(spec: ProblemSpec, mesh: Mesh) -> F64:
    """Displacements (n_nodes, 3) in m by sparse LU. Raises InputError if singular."""
    from scipy.sparse.linalg import splu

    geometry = whole_mesh(spec, mesh)
    check_whole(spec, geometry)
    u = prescribed(spec, geometry, geometry.extent)
    free = np.flatnonzero(~fixed_dofs(spec, geometry, geometry.extent))
    f = right_hand_side(spec, geometry, geometry.extent).ravel()
    A = assembled(mesh.x, mesh.cells, mesh.element, *lame(spec, geometry))
    flat = u.ravel()
    flat[free] = splu(A[free][:, free].tocsc()).solve(f[free])
    return u
