"""Internal forces cell by cell, without a matrix: the independent reference of every storage.

Nothing here is shared with the assembled operators. Per cell and quadrature point

    H = J⁻¹ dN/dxiᵀ u,  epsilon = (H + Hᵀ) / 2,  sigma = lam tr(epsilon) 1 + 2 mu epsilon,
    f_a = sum_q w_q dN_a/dxi · adj(J) sigma,

where J[j, i] = dx_i / dxi_j. Arrays of a chunk carry the cells last, so that
each operation runs over contiguous memory; memory is bounded by the chunk.
Results are this rank's part: sums over cells that it owns, not yet summed over
the ranks that share a node.
"""

import numpy as np

from fembench.base.arrays import F64, I32
from fembench.fem.elements import chunks, scatter_add
from fembench.fem.materials import Modulus, part_of
from fembench.fem.shapes import element_named

Cells = I32
CHUNK = 8192


def internal_force(x: F64, cells: Cells, element: str, lam: Modulus, mu: Modulus, u: F64) -> F64:
    """A u (n_nodes, 3) in N, of the unconstrained body; `u` (n_nodes, 3) in m."""
    f = np.zeros_like(x)
    for chunk in chunks(len(cells), CHUNK):
        nodes = cells[chunk]
        lame = part_of(lam, chunk), part_of(mu, chunk)
        forces = _cell_forces(_gathered(x, nodes), _gathered(u, nodes), element, *lame)
        scatter_add(f, nodes, forces.transpose(2, 0, 1))
    return f


def _points(element: str) -> list[tuple[F64, float]]:
    """(dN/dxi (npc, 3), weight) of each quadrature point."""
    reference = element_named(element)
    rule = reference.stiffness_rule
    return list(zip(reference.slope(rule.points), rule.weights.tolist()))


def _cell_forces(X: F64, U: F64, element: str, lam: Modulus, mu: Modulus) -> F64:
    """F (npc, 3, n) from the coordinates X and displacements U (npc, 3, n)."""
    F = np.zeros_like(X)
    for slope, weight in _points(element):
        adj, detJ = _adjugate(_mapped(slope, X))
        H = _product(adj, _mapped(slope, U)) / detJ  # H[j, i] = du_i / dx_j
        sigma = mu * (H + H.transpose(1, 0, 2))
        sigma[[0, 1, 2], [0, 1, 2]] += lam * (H[0, 0] + H[1, 1] + H[2, 2])
        F += weight * np.tensordot(slope, _product(adj.transpose(1, 0, 2), sigma), axes=(1, 0))
    return F


def _mapped(slope: F64, values: F64) -> F64:
    """(3, 3, n): [j, i] = d values_i / dxi_j, one matrix product for the whole chunk."""
    return np.tensordot(slope, values, axes=(0, 0))


def _adjugate(J: F64) -> tuple[F64, F64]:
    """adj (3, 3, n) with J adj = det(J) 1, and det J (n,)."""
    adj = np.empty_like(J)
    for i in range(3):
        for j in range(3):
            a = (i + 1) % 3
            b = (i + 2) % 3
            c = (j + 1) % 3
            d = (j + 2) % 3
            adj[j, i] = J[a, c] * J[b, d] - J[a, d] * J[b, c]
    return adj, J[0, 0] * adj[0, 0] + J[0, 1] * adj[1, 0] + J[0, 2] * adj[2, 0]


def _product(P: F64, Q: F64) -> F64:
    """Matrix product of two fields (3, 3, n)."""
    return np.stack([P[i, 0] * Q[0] + P[i, 1] * Q[1] + P[i, 2] * Q[2] for i in range(3)])


def _gathered(values: F64, nodes: Cells) -> F64:
    """(npc, 3, n) contiguous from (n_nodes, 3)."""
    return np.ascontiguousarray(values[nodes].transpose(1, 2, 0))
