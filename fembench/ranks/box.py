"""A box in parallel: every rank generates only its own cells.

Tags and the boundary come from grid coordinates. The hash is that of the specification,
because no rank has the whole content; it begins with "box-", so it is never taken for
the hash of a mesh's content.

The grid cells are bisected recursively: the parts are halved, and the region is cut
across its longest side in proportion to the shares of the two halves, in whole grid
cells. If the cut falls inside a layer, the layer is cut along its longer side, and the
row in which that cut falls is cut between cells. So a region is a few blocks (boxes of
grid cells), and every part gets its exact number of grid cells. No list of cells is
ever built; a rank follows log2(ranks) cuts to its own region.

A block is an int64 array (3, 2), (low, high) of grid indices; a region (n_blocks, 3, 2).
"""

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.kernels.backend import kernels
from fembench.mesh.box import FACES, Box, Counts, check_memory, coordinates, corners, face_tags
from fembench.mesh.elements import element_named
from fembench.mesh.facets import NONE, facet_neighbours
from fembench.mesh.presets import box_named
from fembench.mesh.sliced import BOUNDARY
from fembench.ranks.comm import Comm
from fembench.ranks.piece import Piece, TagMasks
from fembench.ranks.subdomain import Subdomain


class LocalBox(Struct, frozen=True, eq=False, dict=True):
    """The cells of one part, nodes numbered locally in the order of global numbers."""

    plan: Box
    x: np.ndarray  # (n_nodes, 3) float64
    cells: np.ndarray  # (n_cells, nodes of the element) int32 local
    global_nodes: np.ndarray  # (n_nodes,) int64, ascending
    global_cells: np.ndarray  # (n_cells,) int64, ascending

    @cached_property
    def facet_tags(self) -> dict[str, np.ndarray]:
        """Facets of these cells on the faces of the box, as `box` tags: (n, 3 | 4) int32."""
        per_grid = len(corners(self.plan.element))
        grid = grid_indices(self.plan.cells, self.global_cells[::per_grid] // per_grid)
        return face_tags(self.plan, self.cells.reshape(-1, per_grid, self.cells.shape[1]), grid)


def local_box(plan: Box, targets: Sequence[float], part: int) -> LocalBox:
    """Part `part` of the box, its share close to targets[part]. Raises InputError."""
    return fill_region(plan, box_region(plan.cells, targets, part))


def box_region(counts: Counts, targets: Sequence[float], part: int) -> np.ndarray:
    """(n_blocks, 3, 2) int64: the grid cells of a part. Raises
    InputError for too many parts."""
    sizes = _sizes(counts, targets)
    region = np.array([[[0, n] for n in counts]], dtype=np.int64)
    first, last = 0, len(sizes)
    while last - first > 1:
        middle = (first + last) // 2
        lower, upper = cut_region(region, int(sizes[first:middle].sum()), counts)
        region, first, last = (lower, first, middle) if part < middle else (upper, middle, last)
    return region


def cut_region(region: np.ndarray, n_lower: int, counts: Counts) -> tuple[np.ndarray, np.ndarray]:
    """The first `n_lower` grid cells of a region across its longest side; the rest."""
    spans = region[:, :, 1].max(axis=0) - region[:, :, 0].min(axis=0)
    axes = tuple(int(a) for a in np.argsort(-spans, kind="stable"))
    lower: list[np.ndarray] = []
    upper: list[np.ndarray] = []
    level = region
    for axis in axes:
        at = _layer_of(level, axis, n_lower)
        below, level, above = _slice(level, axis, at)
        n_lower -= region_size(below)
        lower.append(below)
        upper.append(above)
    # n_lower is 0 now: the one grid cell left is the first of the upper half
    upper.append(level)
    return np.concatenate(lower), np.concatenate(upper)


def fill_region(plan: Box, region: np.ndarray) -> LocalBox:
    """Nodes and cells of a region of a box."""
    lattices = [_lattice(block, plan.strides, 1) for block in region]
    numbers = np.sort(np.concatenate([a.reshape(-1) for a in lattices]), kind="stable")  # merges them
    global_nodes = numbers[np.append(True, numbers[1:] != numbers[:-1])]
    unit = corners(plan.element)
    grid_cells, cells = [], []
    for block, lattice in zip(region, lattices):
        local = np.searchsorted(global_nodes, lattice).astype(np.int32)  # [k, j, i]
        nk, nj, ni = (n - 1 for n in lattice.shape)
        shifted = [
            [local[c[2] : c[2] + nk, c[1] : c[1] + nj, c[0] : c[0] + ni] for c in path] for path in unit
        ]
        cells.append(np.moveaxis(np.array(shifted), (0, 1), (3, 4)).reshape(-1, *unit.shape[:2]))
        nx, ny, _ = plan.cells
        grid_cells.append(_lattice(block, (1, nx, nx * ny), 0).reshape(-1))
    numbers = np.concatenate(grid_cells)
    order = np.argsort(numbers, kind="stable")
    per_grid = len(unit)
    return LocalBox(
        plan,
        coordinates(plan, grid_indices([n + 1 for n in plan.cells], global_nodes)),
        np.concatenate(cells)[order].reshape(-1, unit.shape[1]),
        global_nodes,
        (numbers[order][:, None] * per_grid + np.arange(per_grid)).reshape(-1),
    )


def grid_indices(counts: Sequence[int], numbers: np.ndarray) -> list[np.ndarray]:
    """i, j, k, each (n,) int64, of lattice points numbered i +
    counts[0] (j + counts[1] k)."""
    rest, i = np.divmod(numbers, counts[0])
    k, j = np.divmod(rest, counts[1])
    return [i, j, k]


def region_size(region: np.ndarray) -> int:
    """Grid cells in a region."""
    return int(np.prod(region[:, :, 1] - region[:, :, 0], axis=1).sum())


def _sizes(counts: Counts, targets: Sequence[float]) -> np.ndarray:
    """(n_parts,) int64 grid cells of each part, at least 1. Raises InputError."""
    total = counts[0] * counts[1] * counts[2]
    if len(targets) > total:
        raise InputError(
            f"{plural(len(targets), 'part')} of {plural(total, 'grid cell')}; "
            "expected at most one part per grid cell"
        )
    ends = np.rint(np.cumsum(targets) / np.sum(targets) * total).astype(np.int64)
    ends = np.maximum.accumulate(ends - np.arange(len(ends))) + np.arange(len(ends))  # at least one more each
    ends = np.clip(ends, np.arange(1, len(ends) + 1), total - len(ends) + np.arange(1, len(ends) + 1))
    ends[-1] = total
    return np.diff(ends, prepend=0)


def _layer_of(region: np.ndarray, axis: int, n_lower: int) -> int:
    """The layer across `axis` in which grid cell `n_lower` (from 0) of the region lies."""
    low = int(region[:, axis, 0].min())
    high = int(region[:, axis, 1].max())
    while high - low > 1:
        middle = (low + high) // 2
        if region_size(_slice(region, axis, middle)[0]) <= n_lower:
            low = middle
        else:
            high = middle
    return low


def _slice(region: np.ndarray, axis: int, at: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The region below the layer `at` across `axis`, in it, and above it."""
    pieces = []
    for low, high in ((-1, at), (at, at + 1), (at + 1, np.iinfo(np.int64).max)):
        piece = region.copy()
        piece[:, axis] = np.clip(piece[:, axis], max(low, 0), high)
        pieces.append(piece[piece[:, axis, 1] > piece[:, axis, 0]])
    return pieces[0], pieces[1], pieces[2]


def _lattice(block: np.ndarray, strides: Counts, extra: int) -> np.ndarray:
    """(nk, nj, ni) int64: numbers of lattice points; extra = 1 for nodes, 0 for cells."""
    i, j, k = (np.arange(low, high + extra, dtype=np.int64) for low, high in block)
    return i * strides[0] + (j * strides[1])[:, None] + (k * strides[2])[:, None, None]


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
