"""The coarse space of the two-level preconditioner: six rigid-body modes of each part.

Z holds, for every part p, its six rigid motions (three translations, three rotations about the part's
centre), weighted by 1 / multiplicity on shared nodes and zero on restrained dofs, so that the motions of
all parts add up to those of the body. E = Z^T A Z is (6 P, 6 P). Source: Nicolaides, Deflation of
conjugate gradients with applications to boundary value problems, SIAM J. Numer. Anal. 24 (1987) 355.

Only cells that touch the interface or a restrained node contribute to E: in every other cell the modes are
rigid and store no energy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fembench.fem.material import Modulus
from fembench.fem.materials import part_of
from fembench.fem.rigid import rigid_modes
from fembench.kernels.backend import kernels

if TYPE_CHECKING:
    from fembench.ranks.interface import Interface
    from fembench.ranks.subdomain import Subdomain

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
CELLS_AT_ONCE = 4096


@dataclass(frozen=True)
class Sharers:
    """Which parts share which interface node; nodes shared by the same parts form one kind."""

    kind: I32  # (n_interface,) number of the kind; kind 0 is "this part alone"
    parts: tuple[tuple[int, ...], ...]  # by kind: ranks, ascending


def find_sharers(interface: Interface) -> Sharers:
    """The kinds of interface nodes of one rank."""
    rank, n_interior = interface.comm.rank, interface.first_dof // 3
    n_interface = interface.n_dofs // 3 - n_interior
    columns = sorted({rank, *interface.neighbours})
    holds = np.zeros((n_interface, len(columns)), bool)
    holds[:, columns.index(rank)] = True
    for neighbour, nodes in zip(interface.neighbours, interface.nodes):
        holds[nodes - n_interior, columns.index(neighbour)] = True
    sets, kind = np.unique(holds, axis=0, return_inverse=True)
    parts = tuple(tuple(q for q, held in zip(columns, row) if held) for row in sets)
    return Sharers((kind.reshape(-1) + 1).astype(np.int32), ((rank,), *parts))


def about_origin(rows: F64, centre: F64, origin: F64) -> F64:
    """Coefficients (6, n) of motions about `centre` as those about `origin`: t - w x (centre - origin)."""
    out = rows.copy()
    t, w, c = out[:3], out[3:], centre - origin
    t[0] -= w[1] * c[2] - w[2] * c[1]
    t[1] -= w[2] * c[0] - w[0] * c[2]
    t[2] -= w[0] * c[1] - w[1] * c[0]
    return out


def local_energy(
    sub: Subdomain, sharers: Sharers, centres: F64, lam: Modulus, mu: Modulus
) -> tuple[list[int], F64]:
    """(parts, E (6 n, 6 n) for n parts): contribution of this rank's cells to E; centres (n_ranks, 3)."""
    parts = sorted({q for kind in sharers.parts for q in kind})
    kind = np.zeros(sub.n_nodes, np.int32)
    kind[sub.n_interior : sub.n_active] = sharers.kind
    special = kind > 0
    special[sub.n_active :] = True
    special[: sub.n_active] |= sub.fixed.reshape(-1, 3).any(axis=1)
    chosen = np.flatnonzero(special[sub.cells].any(axis=1))
    E = np.zeros((6 * len(parts), 6 * len(parts)))
    for begin in range(0, len(chosen), CELLS_AT_ONCE):
        here = chosen[begin : begin + CELLS_AT_ONCE]
        some = sub.cells[here]
        ke = kernels.stiffness(sub.x, some, part_of(lam, here), part_of(mu, here))
        Z = _modes(sub, kind, sharers, parts, centres, some).reshape(len(some), ke.shape[1], -1)
        E += np.einsum("nik,nil->kl", Z, ke @ Z, optimize=True)
    return parts, E


def _modes(sub: Subdomain, kind: I32, sharers: Sharers, parts: list[int], centres: F64, cells: I32) -> F64:
    """Z on the nodes of some cells: (n_cells, nodes_per_cell, 3, 6 n_parts)."""
    nodes, back = np.unique(cells, return_inverse=True)
    Z = np.zeros((len(nodes), 3, len(parts), 6))
    active = nodes < sub.n_active
    for k in np.unique(kind[nodes]):
        mine = np.flatnonzero(active & (kind[nodes] == k))
        held = sharers.parts[k]
        for q in held:
            Z[mine, :, parts.index(q)] = rigid_modes(sub.x[nodes[mine]], centres[q]) / len(held)
    free = ~sub.fixed.reshape(-1, 3)[nodes[active]]
    Z[active] *= free[:, :, None, None]
    return Z.reshape(len(nodes), 3, -1)[back.reshape(cells.shape)]


def coarse_inverse(interface: Interface, parts: list[int], E: F64) -> F64:
    """(6 P, 6 P) inverse of the sum over ranks; computed on rank 0, so that all ranks have the same bits.
    Collective.
    """
    comm = interface.comm
    shares = comm.gather((parts, E))
    inverse = np.empty((6 * comm.size, 6 * comm.size))
    if shares is not None:
        total = np.zeros_like(inverse).reshape(comm.size, 6, comm.size, 6)
        for held, share in shares:
            total[np.ix_(held, range(6), held, range(6))] += share.reshape(len(held), 6, len(held), 6)
        inverse[:] = pseudo_inverse(total.reshape(inverse.shape))
    comm.Bcast(inverse)
    return inverse


def pseudo_inverse(E: F64) -> F64:
    """Pseudo-inverse of a symmetric matrix scaled to a unit diagonal; motions without energy are left out."""
    scale = np.sqrt(np.where(np.diag(E) > 0, np.diag(E), 1.0))
    values, vectors = np.linalg.eigh((E + E.T) / 2 / np.outer(scale, scale))
    kept = values > 1e-10 * values[-1]
    V = vectors[:, kept]
    return (V / values[kept]) @ V.T / np.outer(scale, scale)
