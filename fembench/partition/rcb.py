"""Recursive coordinate bisection with target shares: no graph, no randomness, positions preserved.

The parts are halved, and the cells are cut across the longest side of their bounding box in proportion to
the shares of the two halves. A structured mesh has its cells in layers: a plane through a layer would tear it
apart and share twice the nodes. So all cells of the layer in which the cut falls, bounded by the widest gaps
between coordinates within reach, count as equal, and the layer is divided along the next longest side. Every
part gets its exact number of cells.
"""

from collections.abc import Sequence

import numpy as np

RESOLUTION = 2**30  # steps across the mesh; rounding noise is smaller than one
REACH = 1.9  # how far a layer may extend, in (volume of the bounding box / cells)^(1/3): a cube of six tets


def bisect_coordinates(centroids: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """(n_cells,) int32: part p gets sizes[p] cells. centroids: (n_cells, 3); sum of sizes = n_cells."""
    low = centroids.min(axis=0)
    spans = centroids.max(axis=0) - low
    extent = float(spans.max()) or 1.0
    grid = np.rint((centroids - low) * (RESOLUTION / extent)).astype(np.int64)
    edge = np.prod(np.maximum(spans / extent, 1e-6) / len(centroids) ** (1 / 3)) ** (1 / 3)
    part = np.empty(len(centroids), dtype=np.int32)
    stack = [(np.arange(len(centroids)), 0, len(sizes))]
    while stack:
        cells, first, last = stack.pop()
        if last - first == 1:
            part[cells] = first
            continue
        middle = (first + last) // 2
        lower, upper = _split(grid, cells, sum(sizes[first:middle]), int(REACH * edge * RESOLUTION))
        stack += [(lower, first, middle), (upper, middle, last)]
    return part


def _split(grid: np.ndarray, cells: np.ndarray, n_lower: int, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """The `n_lower` cells on the low side of the longest axis, and the rest; both in ascending order."""
    points = grid[cells]
    axes = np.argsort(points.min(axis=0) - points.max(axis=0), kind="stable")  # longest first
    along = points[:, axes[0]]
    bottom, top = _layer(along, int(np.partition(along, n_lower - 1)[n_lower - 1]), reach)
    lower = along < bottom
    level = np.flatnonzero((along >= bottom) & (along <= top))
    order = np.lexsort((level, along[level], points[level, axes[2]], points[level, axes[1]]))
    lower[level[order[: n_lower - np.count_nonzero(lower)]]] = True
    return cells[lower], cells[~lower]


def _layer(along: np.ndarray, pivot: int, reach: int) -> tuple[int, int]:
    """Lowest and highest coordinate of the layer round `pivot`: it ends at the widest gap on either side,
    the nearest of equal ones."""
    near = np.unique(along[np.abs(along - pivot) <= reach])
    gaps = np.diff(near)
    at = int(np.searchsorted(near, pivot))
    below, above = gaps[:at][::-1], gaps[at:]
    bottom = at - _widest(below) if len(below) else at
    top = at + _widest(above) if len(above) else at
    return int(near[bottom]), int(near[top])


def _widest(gaps: np.ndarray) -> int:
    """Index of the first gap that is as wide as the widest, up to rounding."""
    return int(np.argmax(gaps >= 0.99 * gaps.max()))


def apportion(targets: Sequence[float], n: int) -> list[int]:
    """Whole numbers that sum to n, each at least 1, closest to targets * n (largest remainders)."""
    exact = np.array(targets) * n
    sizes = np.maximum(np.floor(exact).astype(np.int64), 1)
    while sizes.sum() < n:
        sizes[int(np.argmax(exact - sizes))] += 1
    while sizes.sum() > n:
        sizes[int(np.argmax(np.where(sizes > 1, sizes - exact, -np.inf)))] -= 1
    return [int(s) for s in sizes]
