"""Strain and stress of each cell, averaged over its volume, for pictures and exports."""

import numpy as np

from fembench.base.arrays import F64, I32
from fembench.fem.elements import chunks, gradients, strain_matrix
from fembench.fem.material import Modulus, stiffness


def cell_strain(x: F64, cells: I32, element: str, u: F64) -> F64:
    """(n_cells, 6) mean engineering strain of each cell from displacements (n_nodes, 3)."""
    strain = np.empty((len(cells), 6))
    for chunk in chunks(len(cells)):
        nodes = cells[chunk]
        dN, dV = gradients(x[nodes], element)
        at_points = strain_matrix(dN) @ u[nodes].reshape(len(nodes), 1, -1, 1)
        mean = dV / dV.sum(axis=1, keepdims=True)
        strain[chunk] = np.einsum("eqi,eq->ei", at_points[..., 0], mean)
    return strain


def cell_stress(x: F64, cells: I32, element: str, lam: Modulus, mu: Modulus, u: F64) -> F64:
    """(n_cells, 6) mean stress of each cell, Pa."""
    return (cell_strain(x, cells, element, u)[:, None] @ stiffness(lam, mu))[:, 0]


def von_mises(sigma: F64) -> F64:
    """(n,) von Mises stress of stresses (n, 6), Pa."""
    normal, shear = sigma[:, :3], sigma[:, 3:]
    deviator = normal - normal.mean(axis=1, keepdims=True)
    return np.sqrt(1.5 * np.sum(deviator**2, axis=1) + 3 * np.sum(shear**2, axis=1))
