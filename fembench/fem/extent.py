"""Extent: the bounding box of the whole mesh. Rigid-body motions about its centre.

The motions are three translations and three rotations, to first order. Rotations are
divided by a length, so that all six columns have size one. All ranks must use the same
extent, and so the same centre and length (`Extent.centre`, `Extent.diagonal`).
"""

from typing import NamedTuple

import numpy as np

from fembench.base.arrays import F64, Mask

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


RANK_TOLERANCE = 1e-12  # of Gram matrices whose modes have size one: below, a motion is free


def rigid_modes(x: F64, centre: F64 | None = None, length: float = 1.0) -> F64:
    """(n_nodes, 3, 6): translations in x, y, z, then rotations about `centre`.

    The default centre is the mean of the nodes.
    """
    centre = x.mean(axis=0) if centre is None else centre
    modes = np.zeros((len(x), 3, 6))
    modes[:, [0, 1, 2], [0, 1, 2]] = 1.0
    for axis, omega in enumerate(np.eye(3)):
        modes[:, :, 3 + axis] = np.cross(omega, (x - centre) / length)
    return modes


def gram(modes: F64, mask: Mask) -> F64:
    """(6, 6) the products of the modes over the dofs in `mask` (n_nodes, 3).

    Sums over ranks that count each dof once give that of the whole mesh.
    """
    rows = modes[mask]
    return rows.T @ rows


def orthonormal(modes: F64, total_gram: F64 | None = None) -> F64:
    """The same space with orthonormal columns, (n_nodes, 3, 6).

    `total_gram` (6, 6) is the Gram matrix of the whole mesh, by default of these nodes.
    """
    G = gram(modes, np.ones(modes.shape[:2], dtype=bool)) if total_gram is None else total_gram
    return modes @ np.linalg.inv(np.linalg.cholesky(G)).T


def restrained_motions(total_gram: F64) -> int:
    """How many of the six motions a set of restrained dofs holds, from its Gram matrix."""
    values = np.linalg.eigvalsh(total_gram)
    return int(np.count_nonzero(values > RANK_TOLERANCE * max(values[-1], np.finfo(float).tiny)))
