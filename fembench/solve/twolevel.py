"""The two-level preconditioner: Jacobi plus a correction by the rigid motions of all parts.

    z = D^-1 r + Z E^-1 Z^T r              (additive; Z and E as in coarse.py)

Z^T r of a part needs only the part's own nodes, so an application costs one all-gather of six numbers per
rank and no message to neighbours. Every sharer of a node computes its correction from the same numbers in the
same order, so copies stay bit-identical.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fembench.kernels.backend import kernels
from fembench.ranks.comm import DOUBLE
from fembench.records.phases import ALLREDUCE, PRECOND
from fembench.solve.coarse import Sharers, about_origin, coarse_inverse, find_sharers, local_energy
from fembench.timing.tracer import Stamps, Traffic, chain

if TYPE_CHECKING:
    from fembench.ranks.interface import Interface
    from fembench.ranks.subdomain import Subdomain
    from fembench.solve.operators import Operator

F64 = NDArray[np.float64]


class TwoLevel:
    """Jacobi and six rigid-body modes per part."""

    identity = False
    inverse: F64 | None = None  # nothing to fold in

    def __init__(
        self, A: Operator, interface: Interface, sub: Subdomain, inverse_diagonal: F64, tracer: Stamps
    ) -> None:
        comm = interface.comm
        self._x, self._weights, self._diagonal = sub.x, interface.weights, inverse_diagonal
        self._fixed = np.flatnonzero(sub.fixed)
        self._tracer = tracer
        centres = np.array(comm.allgather(sub.x.mean(axis=0)))
        self._centre, self._origin = centres[comm.rank].copy(), centres.mean(axis=0)
        sharers = find_sharers(interface)
        self._kind = sharers.kind
        parts, E = local_energy(sub, sharers, centres, A.lam, A.mu)
        self._coarse = _motions(coarse_inverse(interface, parts, E), sharers, centres, self._origin)
        moments, gathered = np.empty(6), np.empty(6 * comm.size)
        self._moments, self._gathered = moments, gathered
        self._gather = chain(
            tracer,
            (
                Traffic(ALLREDUCE, (), (moments.nbytes,)),
                lambda: comm.Allgather([moments, 6, DOUBLE], [gathered, 6, DOUBLE]),
            ),
        )
        self._bound: tuple[F64, F64] | None = None
        self.coarse_entries = self._coarse.size

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
    """(6 n_kinds, 6 P): from all moments to the motion of each kind of node, about the common origin.

    Sums over sharers run in ascending order of rank, so that every sharer gets the same bits.
    """
    out = kernels.zeros((len(sharers.parts), 6, inverse.shape[1]))
    for motion, held in zip(out, sharers.parts):
        for q in held:
            motion += about_origin(inverse[6 * q : 6 * q + 6], centres[q], origin)
        motion /= len(held)
    return out.reshape(-1, inverse.shape[1])
