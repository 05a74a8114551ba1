"""The active dofs in PETSc's numbering, and the rank's stiffness as a PETSc matrix.

`solve.petsc`, the only importer of petsc4py, passes PETSc as an argument.

PETSc numbers dofs by owner (the lowest sharer), each rank's in its own order, and sums
the ranks' stiffness during assembly: `aij` scalar rows, `baij` 3x3 blocks, `sbaij`
their upper triangle; `is` keeps the ranks' matrices unassembled as fembench does. A
restrained dof keeps a diagonal entry (one from each sharer) and a zero load, so it
never moves and the iterates are those of the reduced system.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.fem.extent import gram, orthonormal, rigid_modes
from fembench.methods.lookup import storage_of
from fembench.ranks.comm import SUM
from fembench.solve.operators import assembled

if TYPE_CHECKING:
    from fembench.fem.materials import Modulus
    from fembench.ranks.interface import Interface
    from fembench.ranks.subdomain import Subdomain


class Numbering:
    """The active nodes of a rank in PETSc's order: by owner, each owner's in its order."""

    def __init__(self, PETSc: Any, sub: Subdomain, interface: Interface) -> None:
        self.PETSc = PETSc
        self.interface = interface
        counts = interface.comm.allgather(int(sub.owned_nodes[: sub.n_active].sum()))
        self.is_owned = sub.owned_nodes[: sub.n_active]  # (n_active,)
        self.n_owned = counts[interface.comm.rank]
        self.n_total = sum(counts)
        self.first = sum(counts[: interface.comm.rank])
        if 3 * self.n_total > np.iinfo(PETSc.IntType).max:
            raise InputError(
                f"PETSc: {3 * self.n_total} dofs; this build counts in {np.dtype(PETSc.IntType)}"
            )
        numbers = np.zeros((sub.n_active, 3))
        numbers[self.is_owned, 0] = np.arange(self.first, self.first + self.n_owned)
        interface.update(numbers.reshape(-1))  # all ranks but the owner add zero
        self.nodes = numbers[:, 0].astype(PETSc.IntType)  # (n_active,) global numbers

    def owned(self, v: F64) -> F64:
        """(3 n_owned,) of a flat vector (3 n_active,)."""
        return v.reshape(-1, 3)[self.is_owned].reshape(-1)

    def spread(self, owned: F64) -> F64:
        """(3 n_active,) of (3 n_owned,), the same bits on every sharer. Collective."""
        v = np.zeros((self.is_owned.size, 3))
        v[self.is_owned] = owned.reshape(-1, 3)
        return self.interface.update(v.reshape(-1))

    def row_bounds(self, rows: NDArray, columns: NDArray, upper: bool) -> tuple[NDArray, NDArray]:
        """Most blocks per owned row (owned, other columns); exact but in shared rows.

        `rows`, `columns` are local nodes of the rank's blocks. Collective.
        """
        here = self.is_owned[columns]
        keep = self.nodes[columns] >= self.nodes[rows] if upper else np.ones(rows.size, bool)
        counts = np.zeros((self.is_owned.size, 3))
        for c, chosen in enumerate((here, ~here)):
            counts[:, c] = np.bincount(rows[keep & chosen], minlength=len(counts))
        total = counts.copy()
        self.interface.update(total.reshape(-1))
        shared = self.interface.first_dof // 3
        # a sharer's columns may be anyone's
        total[shared:, :2] = total[shared:, :2].sum(axis=1, keepdims=True)
        bounds = np.minimum(total[self.is_owned, :2], [self.n_owned, self.n_total - self.n_owned])
        return tuple(bounds.astype(self.PETSc.IntType).T)


def assemble(storage: str, sub: Subdomain, numbering: Numbering, lam: Modulus, mu: Modulus) -> Any:
    """The PETSc matrix from the rank's own cells. Collective."""
    PETSc, comm = numbering.PETSc, numbering.interface.comm
    indptr, _, columns, values = assembled(sub, lam, mu, upper=False)
    indptr = indptr.astype(PETSc.IntType)
    columns = columns.astype(PETSc.IntType)
    size = (3 * numbering.n_owned, 3 * numbering.n_total)
    to_global = PETSc.LGMap().create(numbering.nodes, bsize=3, comm=comm)
    A = PETSc.Mat()
    if storage == "is":
        n = 3 * sub.n_active
        local = PETSc.Mat().createBAIJ((n, n), bsize=3, csr=(indptr, columns, values), comm=PETSc.COMM_SELF)
        A.createIS((size, size), bsize=3, lgmapr=to_global, lgmapc=to_global, comm=comm)
        A.setISLocalMat(local)
    else:
        rows = np.repeat(np.arange(sub.n_active), np.diff(indptr))
        bounds = numbering.row_bounds(rows, columns, upper=storage_of(storage).half)
        scale = 3 if storage == "aij" else 1
        A.create(comm=comm)
        A.setSizes((size, size), bsize=3)
        A.setType(storage)
        A.setPreallocationNNZ(tuple(np.repeat(scale * n, scale) for n in bounds))
        A.setLGMap(to_global, to_global)
        if storage_of(storage).half:
            A.setOption(PETSc.Mat.Option.IGNORE_LOWER_TRIANGULAR, True)
        A.setValuesBlockedLocalCSR(indptr, columns, values, addv=PETSc.InsertMode.ADD_VALUES)
    A.assemble()
    A.setOption(PETSc.Mat.Option.SPD, True)
    A.setNearNullSpace(_near_null_space(sub, numbering))
    return A


def assembled_rows(A: Any) -> Any:
    """A as `aij`, the only storage gamg can be built from;
    products still use A. Collective."""
    if A.getType() in ("seqaij", "mpiaij"):
        return A
    P = A.duplicate(copy=True).convert("aij")
    P.setNearNullSpace(A.getNearNullSpace())
    return P


def _near_null_space(sub: Subdomain, numbering: Numbering) -> Any:
    """The six rigid-body modes, zero at restrained dofs, orthonormal. Collective."""
    PETSc, comm = numbering.PETSc, numbering.interface.comm
    x, mine = sub.x[: sub.n_active], numbering.is_owned
    here = np.array([*x[mine].sum(axis=0), mine.sum(), 0.0])
    centre = np.empty_like(here)
    comm.Allreduce(here, centre, SUM)
    modes = rigid_modes(x, centre[:3] / centre[3])
    modes[sub.fixed.reshape(-1, 3)] = 0.0
    local = gram(modes, np.repeat(mine[:, None], 3, axis=1))
    total = np.empty_like(local)
    comm.Allreduce(local, total, SUM)
    modes = orthonormal(modes, total)[mine]
    size = (3 * numbering.n_owned, 3 * numbering.n_total)
    vectors = [
        PETSc.Vec().createWithArray(modes[:, :, k].ravel(), size=size, bsize=3, comm=comm) for k in range(6)
    ]
    return PETSc.NullSpace().create(constant=False, vectors=vectors, comm=comm)
