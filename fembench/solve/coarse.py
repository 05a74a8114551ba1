"""The coarse space of the two-level preconditioner: six rigid-body modes of each part.

Z holds, for every part p, its six rigid motions (three translations, three rotations
about the part's centre), weighted by 1 / multiplicity on shared nodes and zero on
restrained dofs, so that the motions of all parts add up to those of the body. E = Z^T A
Z is (6 P, 6 P). Source: Nicolaides, Deflation of conjugate gradients with applications
to boundary value problems, SIAM J. Numer. Anal. 24 (1987) 355.

Only cells that touch the interface or a restrained node contribute to E: in every other
cell the modes are rigid and store no energy.

The two-level preconditioner: Jacobi plus a correction by the rigid motions of all parts.

    z = D^-1 r + Z E^-1 Z^T r              (additive; Z and E as in coarse.py)

Z^T r of a part needs only the part's own nodes, so an application costs one all-gather
of six numbers per rank and no message to neighbours. Every sharer of a node computes
its correction from the same numbers in the same order, so copies stay bit-identical."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from fembench.base.arrays import F64, I32
from fembench.fem.extent import rigid_modes
from fembench.fem.materials import Modulus, part_of
from fembench.kernels.backend import kernels
from fembench.methods.steps import Work
from fembench.ranks.comm import DOUBLE
from fembench.records.phases import ALLREDUCE, PRECOND
from fembench.solve.precond import inverse_diagonal
from fembench.timing.tracer import Stamps, Traffic, chain

if TYPE_CHECKING:
    from fembench.ranks.interface import Interface
    from fembench.ranks.subdomain import Subdomain
    from fembench.solve.operators import Operator

CELLS_AT_ONCE = 4096


class Sharers(Struct, frozen=True):
    """Which parts share which interface node; nodes of the same parts form one kind."""

    kind: I32  # (n_interface,) number of the kind; kind 0 is "this part alone"
    parts: tuple[tuple[int, ...], ...]  # by kind: ranks, ascending


def find_sharers(interface: Interface) -> Sharers:
    """The kinds of interface nodes of one rank."""
    rank = interface.comm.rank
    n_interior = interface.first_dof // 3
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
    """Coefficients (6, n) of motions about `centre`, about `origin`: t - w x (centre -
    origin)."""
    out = rows.copy()
    t, w, c = out[:3], out[3:], centre - origin
    t[0] -= w[1] * c[2] - w[2] * c[1]
    t[1] -= w[2] * c[0] - w[0] * c[2]
    t[2] -= w[0] * c[1] - w[1] * c[0]
    return out


def local_energy(
    sub: Subdomain, sharers: Sharers, centres: F64, lam: Modulus, mu: Modulus
) -> tuple[list[int], F64]:
    """(parts, E (6 n, 6 n) for n parts): this rank's share of E; centres (n_ranks, 3)."""
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


def _modes(
    sub: Subdomain,
    kind: I32,
    sharers: Sharers,
    parts: list[int],
    centres: F64,
    cells: I32,
) -> F64:
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
    """(6 P, 6 P) inverse of the sum over ranks; by rank 0, for the same bits. Collective."""
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
    """Pseudo-inverse of a matrix scaled to a unit diagonal, without motions of no energy."""
    scale = np.sqrt(np.where(np.diag(E) > 0, np.diag(E), 1.0))
    values, vectors = np.linalg.eigh((E + E.T) / 2 / np.outer(scale, scale))
    kept = values > 1e-10 * values[-1]
    V = vectors[:, kept]
    return (V / values[kept]) @ V.T / np.outer(scale, scale)


class TwoLevel:
    """Jacobi and six rigid-body modes per part. Collective."""

    identity = False
    inverse: F64 | None = None  # nothing to fold in

    def __init__(self, A: Operator, interface: Interface, sub: Subdomain, tracer: Stamps) -> None:
        comm = interface.comm
        self._x = sub.x
        self._weights = interface.weights
        self._diagonal = inverse_diagonal(A, interface)
        self._fixed = np.flatnonzero(sub.fixed)
        self._tracer = tracer
        centres = np.array(comm.allgather(sub.x.mean(axis=0)))
        self._centre = centres[comm.rank].copy()
        self._origin = centres.mean(axis=0)
        sharers = find_sharers(interface)
        self._kind = sharers.kind
        parts, E = local_energy(sub, sharers, centres, A.lam, A.mu)
        self._coarse = _motions(coarse_inverse(interface, parts, E), sharers, centres, self._origin)
        moments = np.empty(6)
        gathered = np.empty(6 * comm.size)
        self._moments = moments
        self._gathered = gathered
        self._gather = chain(
            tracer,
            (
                Traffic(ALLREDUCE, (), (moments.nbytes,)),
                lambda: comm.Allgather([moments, 6, DOUBLE], [gathered, 6, DOUBLE]),
            ),
        )
        self._bound: tuple[F64, F64] | None = None
        self.extra = Work(2, self._coarse.itemsize) * self._coarse.size

    def apply(self, r: F64, z: F64) -> None:
        """Overwrite z. Collective."""
        if self._bound is None or self._bound[0] is not r or self._bound[1] is not z:
            self._bound = (r, z)
            self._modes = kernels.RigidModes(
                self._x,
                self._centre,
                self._origin,
                self._weights,
                self._kind,
                self._coarse,
                self._moments,
                self._gathered,
                self._diagonal,
                r,
                z,
            )
        begin, end = self._tracer.begin, self._tracer.end
        self._modes.restrict()
        end(PRECOND)
        self._gather()
        begin(PRECOND)
        self._modes.correct()
        if self._fixed.size:
            z[self._fixed] = 0.0


def _motions(inverse: F64, sharers: Sharers, centres: F64, origin: F64) -> F64:
    """(6 n_kinds, 6 P): from moments to the motion of each kind of node.

    Sums over sharers run in ascending order of rank, so that every
    sharer gets the same bits.
    """
    out = kernels.zeros((len(sharers.parts), 6, inverse.shape[1]))
    for motion, held in zip(out, sharers.parts):
        for q in held:
            motion += about_origin(inverse[6 * q : 6 * q + 6], centres[q], origin)
        motion /= len(held)
    return out.reshape(-1, inverse.shape[1])
