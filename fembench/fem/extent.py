"""Extent: the bounding box of the whole mesh. Every rank must use the same one."""

from typing import NamedTuple

import numpy as np

from fembench.base.arrays import F64

TOLERANCE = 1e-6  # of the diagonal: nodes closer than this to a plane or point lie on it


class Extent(NamedTuple):
    """Opposite corners `lo` (3,) and `hi` (3,) of the bounding box, m."""

    lo: F64
    hi: F64

    @property
    def diagonal(self) -> float:
        """Length of the box's diagonal, m."""
        return float(np.linalg.norm(self.hi - self.lo))

    @property
    def centre(self) -> F64:
        """(3,) m."""
        return (self.lo + self.hi) / 2

    @property
    def size(self) -> float:
        """The longest edge, m."""
        return float((self.hi - self.lo).max())

    @property
    def tolerance(self) -> float:
        """How far from a plane or point a node may lie and still be selected, m."""
        return TOLERANCE * self.diagonal


def extent_of(x: F64) -> Extent:
    """The extent of nodes (n_nodes, 3); over ranks, take the least `lo`, the largest `hi`."""
    columns = x.T  # one by one: along axis 0 it takes 20 times as long
    return Extent(np.array([c.min() for c in columns]), np.array([c.max() for c in columns]))
