"""Jacobi over blocks: the assembled diagonal summed over the blocks, its inverse folded into each."""

import numpy as np
from numpy.typing import NDArray

from fembench.balance.solver import BlockSolver
from fembench.base.errors import BreakdownError
from fembench.solve.operators import Operator

F64 = NDArray[np.float64]
ROWS, COLUMNS = np.array([0, 1, 2, 0, 1, 2]), np.array([0, 1, 2, 1, 2, 0])  # xx yy zz xy yz zx


def fold_in(solver: BlockSolver, operators: dict[int, Operator], *, by_node: bool) -> None:
    """Jacobi, or its 3x3 blocks, from the assembled diagonal. Collective over neighbours."""
    blocks = solver.blocks.values()
    full = {b.id: operators[b.id].block_diagonal() for b in blocks}
    for c in range(3):
        for b in blocks:
            b.q[:] = np.ascontiguousarray(full[b.id][:, :, c]).reshape(-1)
        solver.exchange.update()
        for b in blocks:
            full[b.id][:, :, c] = b.q.reshape(-1, 3)
    solver.precondition(lambda b: inverse_of(full[b.id], by_node=by_node))


def inverse_of(diagonal: F64, *, by_node: bool) -> F64:
    """(n,) reciprocals or (n/3, 6) inverses of the assembled diagonal (n/3, 3, 3). Raises BreakdownError."""
    entries = np.ascontiguousarray(np.einsum("nii->ni", diagonal)).reshape(-1)
    if not (entries > 0).all():
        raise BreakdownError("the diagonal of A has an entry that is not positive: is the mesh inverted?")
    if not by_node:
        return 1.0 / entries
    return np.ascontiguousarray(np.linalg.inv(diagonal)[:, ROWS, COLUMNS])
