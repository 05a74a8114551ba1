"""Centroids of cells in whole steps, so that a partition by coordinates does not depend on rounding."""

import numpy as np

RESOLUTION = 2**30  # steps across the longest side; rounding noise is smaller than one


def centroids_of(x: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """(n_cells, 3) float64: means of the cells' nodes."""
    total = np.zeros((len(cells), 3))
    for corner in range(cells.shape[1]):
        total += x[cells[:, corner]]
    return total / cells.shape[1]


def in_steps(centroids: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """(n_cells, 3) int32 from 0 to RESOLUTION. low, high: (3,) the bounding box of all centroids."""
    extent = float((high - low).max()) or 1.0
    return np.rint((centroids - low) * (RESOLUTION / extent)).astype(np.int32)
