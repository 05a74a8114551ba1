"""Rigid-body motions: three translations, three rotations, to first order.

Rotations are divided by a length, so that all six columns have size one. All ranks must
use the same centre and length (`Extent.centre`, `Extent.diagonal`).
"""

import numpy as np

from fembench.base.arrays import F64, Mask

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
