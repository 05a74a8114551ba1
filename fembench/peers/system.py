"""The one system K u = f that all peers solve, and the files it is exported to.

Rows are the dofs of the active nodes in the order of the rank's subdomain (reverse
Cuthill-McKee), node by node: row 3 i + c is component c of node i. A restrained dof of
an active node has 1 on the diagonal and a zero load. Fully restrained nodes follow the
active ones and have no rows.

    system.npz   K in compressed rows (data, indices, indptr), f, u, and its origin: x (n_nodes, 3),
                 cells, element, restrained (n_nodes, 3), nodes (their numbers in the mesh), lam and mu
    K.petsc f.petsc u.petsc   for MatLoad and VecLoad: big-endian, 32-bit indices (PETSc manual, MatLoad)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.base.files import atomic_path
from fembench.bench.prepare import Prepared
from fembench.solve.cg import ConjugateGradients
from fembench.solve.iterate import StoppingCriterion
from fembench.solve.operators import assembled, build_operator
from fembench.solve.precond import make_preconditioner
from fembench.timing.tracer import NullTracer

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

TIGHT = 1e-13  # |r| / |f| of the exported u
MAT_CLASS, VEC_CLASS = 1211216, 1211214  # PETSc's marks (MAT_FILE_CLASSID, VEC_FILE_CLASSID)


@dataclass(frozen=True)
class System:
    """K u = f with the mesh it comes from, on one rank."""

    K: csr_matrix  # (n, n), columns ascending, int32 indices
    f: F64  # (n,)
    u: F64  # (n,) solved by our own code far below the tolerance
    residual: float  # |f - K u| / |f|, of this K
    prepared: Prepared


def make_system(prepared: Prepared) -> System:
    """The whole system, from a case prepared on one rank."""
    from scipy.sparse import bsr_matrix

    sub = prepared.sub
    indptr, _, columns, values = assembled(sub, *prepared.lame, upper=False)
    n = 3 * sub.n_active
    if values.size > np.iinfo(np.int32).max:
        raise InputError(f"{values.size} entries: peers use 32-bit indices; choose a smaller mesh")
    K = bsr_matrix((values, columns, indptr.astype(np.int32)), shape=(n, n)).tocsr()
    K.sort_indices()
    u = _solve(prepared)
    norm = float(np.linalg.norm(prepared.rhs))
    if norm == 0.0:
        raise InputError("the load is zero: nothing to compare")
    residual = float(np.linalg.norm(prepared.rhs - K @ u)) / norm
    return System(K=K, f=prepared.rhs, u=u, residual=residual, prepared=prepared)


def _solve(prepared: Prepared) -> F64:
    """u by our own solver, as accurate as rounding allows."""
    tracer = NullTracer()
    A = build_operator("sym", prepared.sub, *prepared.lame)
    M = make_preconditioner("block-jacobi", A, prepared.interface, prepared.sub)
    control = StoppingCriterion(tolerance=TIGHT, relative=True, max_iterations=10 * prepared.mesh.n_equations)
    return ConjugateGradients(A, prepared.interface, M, tracer).solve(prepared.rhs, control).x.copy()


def export(system: System, folder: Path) -> None:
    """Write system.npz, K.petsc, f.petsc and u.petsc. Raises InputError if it cannot."""
    write_npz(system, folder / "system.npz")
    with atomic_path(folder / "K.petsc") as path:
        _write_matrix(system.K, path)
    for name in ("f", "u"):
        with atomic_path(folder / f"{name}.petsc") as path:
            _write_vector(getattr(system, name), path)


def write_npz(system: System, target: Path) -> None:
    """The system and its mesh in one file."""
    K, sub, (lam, mu) = system.K, system.prepared.sub, system.prepared.lame
    with atomic_path(target) as path, open(path, "wb") as stream:
        np.savez(
            stream,
            data=K.data,
            indices=K.indices,
            indptr=K.indptr,
            f=system.f,
            u=system.u,
            x=sub.x,
            cells=sub.cells,
            element=np.array(sub.element),
            restrained=sub.restrained,
            nodes=sub.global_nodes,
            lam=lam,
            mu=mu,
        )


def _write_matrix(K: csr_matrix, path: Path) -> None:
    """Header, entries per row, columns, values."""
    with open(path, "wb") as stream:
        np.array([MAT_CLASS, *K.shape, K.nnz], ">i4").tofile(stream)
        np.diff(K.indptr).astype(">i4").tofile(stream)
        K.indices.astype(">i4").tofile(stream)
        K.data.astype(">f8").tofile(stream)


def _write_vector(v: F64, path: Path) -> None:
    with open(path, "wb") as stream:
        np.array([VEC_CLASS, v.size], ">i4").tofile(stream)
        v.astype(">f8").tofile(stream)
