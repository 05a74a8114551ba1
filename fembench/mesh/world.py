"""What ranks tell each other about a mesh spread over them, for code without MPI.

Corners of cells in whole steps, so that partitions do not depend on rounding."""

from typing import Protocol

import numpy as np


class World(Protocol):
    """All are collective and element-wise over arrays; all ranks get one result."""

    def sum(self, values: np.ndarray) -> np.ndarray: ...

    def max(self, values: np.ndarray) -> np.ndarray: ...

    def rows(self, own: np.ndarray) -> np.ndarray:
        """Those of all ranks."""
        ...

    def holders(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each number, whether this rank is the first to have it; how many have it."""
        ...


class Alone:
    """The world of one rank, which holds everything."""

    def sum(self, values: np.ndarray) -> np.ndarray:
        return values

    max = rows = sum

    def holders(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.ones(len(numbers), dtype=bool), np.ones(len(numbers), dtype=np.int64)


RESOLUTION = 2**30  # steps across the longest side; rounding noise is smaller than one


def lowest_corners(x: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """(n_cells, 3) float64: of each cell, the lowest coordinates of its nodes."""
    lowest = x[cells[:, 0]]
    for corner in range(1, cells.shape[1]):
        np.minimum(lowest, x[cells[:, corner]], out=lowest)
    return lowest


def in_steps(corners: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """(n_cells, 3) int32 from 0 to RESOLUTION. low, high: (3,) bounds of all corners."""
    extent = float((high - low).max()) or 1.0
    return np.rint((corners - low) * (RESOLUTION / extent)).astype(np.int32)
