"""Numbering of a rank's nodes by position, so that products find d and q in a cache.

Nodes are cut into slabs across the longest axis, each slab into rows across the second,
and numbered along the rows: on a box the natural order, on any mesh one like it. Slabs
and rows are one mean node distance thick and hold equal numbers of nodes, so graded
meshes do not pile up. No other order that was measured makes the product faster
(benchmarks/README.md); reverse Cuthill-McKee, which is as good, needs the cells
(`kernels.reorder`).
"""

import itertools

import numpy as np
from numpy.typing import NDArray

from fembench.base.arrays import F64, I32


def rows_in_space(x: F64, *ends: int) -> I32:
    """New position (ends[-1],) of each node before the last end; x (n_nodes, 3).

    The ranges [0, ends[0]), [ends[0], ends[1]), … are numbered apart.
    """
    extent = np.array([np.ptp(column) if len(x) else 0.0 for column in x.T])  # along axis 0: 20 times slower
    distance = _mean_distance(extent, len(x))
    position = np.empty(ends[-1], np.int32)
    for low, high in itertools.pairwise((0, *ends)):
        order = _along_rows(x[low:high], np.argsort(-extent, kind="stable"), distance)
        position[low + order] = np.arange(low, high, dtype=np.int32)
    return position


def _mean_distance(extent: F64, n: int) -> float:
    """h of a grid of n nodes with planes at both ends: the product of extent / h + 1 is n."""
    low, high = 1e-9 * float(extent.max(initial=0)), float(extent.max(initial=0)) or 1.0
    for _ in range(60):
        h = (low + high) / 2
        low, high = (h, high) if np.prod(extent / h + 1) > n else (low, h)
    return high


def _along_rows(x: F64, axes: NDArray[np.intp], distance: float) -> I32:
    """Order of nodes by slab, row and place along the row. Slab by slab, in a cache."""
    if not len(x):
        return np.zeros(0, np.int32)
    a, b, c = axes
    n_slabs, n_rows = (round(float(np.ptp(x[:, axis])) / distance) + 1 for axis in (a, b))
    order = np.argsort(x[:, a], kind="stable").astype(np.int32)
    ends = -(-np.arange(n_slabs + 1) * len(x) // n_slabs)
    for low, high in itertools.pairwise(ends):
        nodes = np.sort(order[low:high])
        row = np.empty(len(nodes), np.int32)
        row[np.argsort(x[nodes, b], kind="stable")] = np.arange(len(nodes)) * n_rows // len(nodes)
        order[low:high] = nodes[np.lexsort((x[nodes, c], row))]
    return order
