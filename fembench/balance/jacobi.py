"""Jacobi over blocks: the assembled diagonal summed over the blocks, its inverse folded into each."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fembench.balance.solver import BlockSolver
from fembench.base.errors import BreakdownError
from fembench.solve.operators import Operator

F64 = NDArray[np.float64]
ROWS, COLUMNS = np.array([0, 1, 2, 0, 1, 2]), np.array([0, 1, 2, 1, 2, 0])  # xx yy zz xy yz zx


def fold_in(solver: BlockSolver, operators: dict[int, Operator], inverse: Callable[[F64], F64]) -> None:
    """Fold in M^-1, which `inverse` computes from the assembled diagonal blocks (n/3, 3, 3). Collective."""
    blocks = solver.blocks.values()
    full = {b.id: operators[b.id].block_diagonal() for b in blocks}
    for c in range(3):
        for b in blocks:
            b.q[:] = np.ascontiguousarray(full[b.id][:, :, c]).reshape(-1)
        solver.exchange.update()
        for b in blocks:
            full[b.id][:, :, c] = b.q.reshape(-1, 3)
    solver.precondition(lambda b: inverse(full[b.id]))


def reciprocals(blocks: F64) -> F64:
    """(n,) reciprocals of the diagonal of assembled blocks (n/3, 3, 3). Raises BreakdownError."""
    entries = np.ascontiguousarray(np.einsum("nii->ni", blocks)).reshape(-1)
    if not (entries > 0).all():
        raise BreakdownError("the diagonal of A has an entry that is not positive: is the mesh inverted?")
    return 1.0 / entries


def inverse_blocks(blocks: F64) -> F64:
    """(n/3, 6) inverses of assembled blocks (n/3, 3, 3). Raises BreakdownError."""
    reciprocals(blocks)
    return np.ascontiguousarray(np.linalg.inv(blocks)[:, ROWS, COLUMNS])
