"""Structured boxes of tet4 (six Kuhn tetrahedra per grid cell) or hex8, any size.

Node number i + (nx + 1) (j + (ny + 1) k); grid cells in the order k, j, i; the
tetrahedra of a grid cell, one for each order of the axes, run along paths from its
corner (i, j, k) to (i+1, j+1, k+1).

A `Box` describes; `box` generates the whole mesh, `ranks.box` one rank's part.
"""

import itertools
import math
import os

import numpy as np
from msgspec import Struct

from fembench.base.errors import InputError
from fembench.mesh.elements import element_named
from fembench.mesh.mesh import Mesh

LENGTHS = (1.0, 0.5, 1.0)  # metres: the solid of R. R. Ferreira (2006)
SHORTEST, LONGEST = 1e-30, 1e30  # metres: volumes and their squares are numbers
FACES = ("x0", "x1", "y0", "y1", "z0", "z1")  # facet tags of a box
MOST_EQUATIONS = 10**15  # largest number a box can be asked for
WORKING_SPACE = 4  # times the size of a mesh: memory needed to generate and inspect it
ROUNDEST = 1.25  # ratio of a grid cell's edges that the search for a size allows

Counts = tuple[int, int, int]


class Box(Struct, frozen=True):
    """Description of a box. Counts are Python integers, which do not overflow."""

    cells: Counts  # grid cells along x, y, z
    element: str = "tet4"
    lengths: tuple[float, float, float] = LENGTHS
    name: str = ""

    def __post_init__(self) -> None:
        element_named(self.element)
        if len(self.cells) != 3 or any(int(n) != n or n < 1 for n in self.cells):
            raise InputError(f"box of {self.cells} cells; expected three whole numbers of at least 1")
        if len(self.lengths) != 3 or not all(SHORTEST <= a <= LONGEST for a in self.lengths):
            expected = f"expected three positive lengths, from {SHORTEST:g} to {LONGEST:g} m"
            raise InputError(f"box with edges {self.lengths}; {expected}")

    @property
    def title(self) -> str:
        """Its name, or the specification that generates it."""
        suffix = "" if self.element == "tet4" else f":{self.element}"
        return self.name or f"box:{'x'.join(map(str, self.cells))}{suffix}"

    @property
    def n_nodes(self) -> int:
        return math.prod(n + 1 for n in self.cells)

    @property
    def n_cells(self) -> int:
        return math.prod(self.cells) * len(corners(self.element))

    @property
    def n_equations(self) -> int:
        """Free dofs with the face x = 0 clamped."""
        nx, ny, nz = self.cells
        return 3 * nx * (ny + 1) * (nz + 1)

    @property
    def strides(self) -> Counts:
        """Difference of node numbers of neighbours along x, y, z."""
        nx, ny, _ = self.cells
        return 1, nx + 1, (nx + 1) * (ny + 1)


def box(
    cells: Counts,
    element: str = "tet4",
    lengths: tuple[float, float, float] = LENGTHS,
    name: str = "",
) -> Mesh:
    """The whole mesh, its faces tagged x0 x1 y0 y1 z0 z1. Raises InputError if it is
    too large."""
    plan = Box(cells, element, lengths, name)
    check_numbers(plan)
    check_memory(plan)
    all_cells = cells_between(plan, 0, cells[2])
    table = element_named(element).facets
    tags = {name: all_cells[at[:, :1], table[at[:, 1]]] for name, at in face_slots(plan).items()}
    return Mesh(nodes_between(plan, 0, cells[2] + 1), all_cells, element, plan.title, facet_tags=tags)


def cells_between(plan: Box, low: int, high: int) -> np.ndarray:
    """(n, nodes of the element) int32: cells of layers low … high - 1 along z, in order."""
    nx, ny, _ = plan.cells
    k, j, i = np.ogrid[low:high, :ny, :nx]
    sx, sy, sz = plan.strides
    base = (i * sx + j * sy + k * sz).astype(np.int32).reshape(-1)
    cells = base[:, None, None] + offsets(plan).astype(np.int32)
    return cells.reshape(-1, cells.shape[-1])


def nodes_between(plan: Box, low: int, high: int) -> np.ndarray:
    """(n, 3) float64: the nodes of the planes low … high - 1 along z, in order."""
    nx, ny, _ = plan.cells
    grid = np.broadcast_arrays(*np.ogrid[low:high, : ny + 1, : nx + 1])
    return coordinates(plan, [a.reshape(-1) for a in grid[::-1]])


def face_slots(plan: Box) -> dict[str, np.ndarray]:
    """Facets on the faces of the box: name -> (n, 2) int64 cell, local facet, ascending."""
    unit = corners(plan.element)[:, element_named(plan.element).facets]
    numbers = np.arange(math.prod(plan.cells)).reshape(plan.cells[::-1])
    found = {}
    for face, name in enumerate(FACES):
        axis, side = divmod(face, 2)
        which, facet = np.nonzero((unit[..., axis] == side).all(axis=-1))
        grid = np.take(numbers, plan.cells[axis] - 1 if side else 0, axis=2 - axis).reshape(-1, 1)
        cell = grid * len(unit) + which
        found[name] = np.stack([cell, np.broadcast_to(facet, cell.shape)], axis=-1).reshape(-1, 2)
    return found


def box_cells_for_equations(
    n: int, lengths: tuple[float, float, float] = LENGTHS, element: str = "tet4"
) -> Counts:
    """Grid cells of the box whose equations (face x = 0 clamped) come closest to `n`.

    Only boxes of nearly cubic grid cells are considered: their longest edge is up to
    1.25 times the shortest; if there is none, the most nearly cubic one is taken. Both
    elements give the same box.
    """
    if not 1 <= n <= MOST_EQUATIONS:
        raise InputError(f"a box of {n} equations; expected 1 to {MOST_EQUATIONS:.0e}")
    Box((1, 1, 1), element, lengths)  # checks both
    counts = _candidates(n, lengths)
    edges = np.array(lengths)[:, None] / counts
    ratio = edges.max(axis=0) / edges.min(axis=0)
    nx, ny, nz = counts
    miss = np.abs(3 * nx * (ny + 1) * (nz + 1) - n)
    miss[ratio > max(ROUNDEST, ratio.min())] = np.iinfo(np.int64).max
    best = counts[:, np.lexsort((ratio, miss))[0]]
    return int(best[0]), int(best[1]), int(best[2])


def _candidates(n: int, lengths: tuple[float, float, float]) -> np.ndarray:
    """(3, m) int64: counts near those of cubes: all of two axes, the third to fit."""
    h = _edge_for_equations(n, lengths)
    near = [np.maximum(np.rint(a / h).astype(np.int64) + np.arange(-8, 9), 1) for a in lengths]
    found = []
    for axis, (b, c) in enumerate(((1, 2), (0, 2), (0, 1))):
        counts = np.empty((3, 17, 17, 3), dtype=np.int64)
        counts[b], counts[c] = near[b][:, None, None], near[c][None, :, None]
        points = [counts[other] + (other > 0) for other in (b, c)]  # the clamped face takes a layer
        exact = n / (3.0 * points[0] * points[1]) - (axis > 0)
        counts[axis] = np.maximum(np.rint(exact).astype(np.int64) + np.arange(-1, 2), 1)
        found.append(counts.reshape(3, -1))
    return np.concatenate(found, axis=1)


def _edge_for_equations(n: int, lengths: tuple[float, float, float]) -> float:
    """The edge h of cubes with 3 (a/h) (b/h + 1) (c/h + 1) = n, by bisection of log h."""
    a, b, c = lengths
    low, high = -300.0, 300.0  # powers of ten
    while high - low > 1e-12:
        middle = (low + high) / 2
        h = 10.0**middle
        # as logarithms: the product may overflow
        equations = math.log(3 * a) - math.log(h) + math.log1p(b / h) + math.log1p(c / h)
        low, high = (middle, high) if equations > math.log(n) else (low, middle)
    return 10.0**low


def corners(element: str) -> np.ndarray:
    """(cells per grid cell, nodes of the element, 3): corners of the grid cell, 0 or 1."""
    if element == "hex8":
        bottom = [[0, 0], [1, 0], [1, 1], [0, 1]]
        return np.array([[[*corner, z] for z in (0, 1) for corner in bottom]])
    paths = []
    for axes in itertools.permutations(range(3)):
        steps = np.eye(3, dtype=int)[list(axes)]
        path = np.vstack([np.zeros((1, 3), dtype=int), np.cumsum(steps, axis=0)])
        odd = np.linalg.det(steps) < 0
        paths.append(path[[0, 2, 1, 3]] if odd else path)
    return np.array(paths)


def offsets(plan: Box) -> np.ndarray:
    """(cells per grid cell, nodes of the element) int64: nodes relative to the first."""
    return corners(plan.element) @ np.array(plan.strides, dtype=np.int64)


def coordinates(plan: Box, indices: list[np.ndarray]) -> np.ndarray:
    """(n, 3) float64 from grid indices i, j, k, each (n,); exact at the last index."""
    columns = [a * (m / n) for a, m, n in zip(plan.lengths, indices, plan.cells)]
    return np.stack(columns, axis=1)


def face_tags(plan: Box, cells: np.ndarray, grid: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Facets on the six faces of the box: name -> (n, 3 or 4) int32, outward, by cell.

    cells: (n_grid, cells per grid cell, nodes of the element), any part of the box in any numbering;
    grid: its grid indices i, j, k, each (n_grid,).
    """
    table = element_named(plan.element).facets
    unit = corners(plan.element)[:, table]  # (per grid cell, facet, node of facet, 3)
    tags = {}
    for face, name in enumerate(FACES):
        axis, side = divmod(face, 2)
        which, facet = np.nonzero((unit[..., axis] == side).all(axis=-1))
        layer = cells[grid[axis] == (plan.cells[axis] - 1 if side else 0)]
        facets = layer[:, which[:, None], table[facet]]
        tags[name] = np.ascontiguousarray(facets.reshape(-1, table.shape[1]), dtype=np.int32)
    return tags


def check_numbers(plan: Box) -> None:
    """Raises InputError if the numbers of the whole mesh do not fit in 32 bits."""
    if max(plan.n_nodes, plan.n_cells) > np.iinfo(np.int32).max:
        raise InputError(
            f"{plan.title}: {plan.n_nodes} nodes and {plan.n_cells} cells are too many for one mesh"
        )


def check_memory(plan: Box, part: float = 1.0) -> None:
    """Raises InputError if a part of the mesh does not fit in this machine's memory."""
    whole = 24 * plan.n_nodes + 4 * plan.n_cells * element_named(plan.element).nodes
    needed = whole * math.ceil(1e9 * part) // 10**9  # in whole numbers, which do not overflow
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if WORKING_SPACE * needed > memory:
        wanted, there = (f"{n / 2**30:.1f} GiB" for n in (WORKING_SPACE * needed, memory))
        raise InputError(f"{plan.title}: generating it needs about {wanted}; this machine has {there}")
