"""Geometric multigrid on background grids, as a preconditioner: one symmetric V-cycle.

Levels: the mesh, then grids of doubled spacing (grids.py), with the Galerkin operators
P^T A P. On every level a rank keeps the operator of its own cells, unassembled; only
results of products are summed. Levels of at most SMALL_LEVEL nodes live on rank 0: one sum
over ranks brings the residual there, one broadcast returns the correction.

Products and vectors are in double precision. Weights, inverse blocks and the
matrices of all grids are stored in single precision, which halves their memory and
what an application reads of them.

Smoother: Chebyshev polynomials in D^-1 A on [largest / RATIO, 1.1 largest], D the
assembled 3x3 diagonal blocks (Adams, Brezina, Hu and Tuminaro, Parallel multigrid
smoothing, J. Comput. Phys. 188 (2003) 593). The coarsest level is solved with a dense
pseudo-inverse.

Every sharer computes a value from the same numbers in the same order: copies stay
identical. But for rounding, the cycle depends neither on the number of ranks nor on
their shares.

apply() runs inside the phase cg.precond, and leaves it for the interface's own where it
communicates. The tracer also sums the phases of each level: the mesh is 1, the small
levels on rank 0 together are the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fembench.base.arrays import F64, I64
from fembench.kernels.backend import kernels
from fembench.methods.preconditioners import COARSEST_LEVEL, SMALL_LEVEL, SMOOTHING_STEPS
from fembench.methods.steps import NO_WORK
from fembench.ranks.comm import DOUBLE, IN_PLACE, MAX, MIN, SUM, alone
from fembench.ranks.interface import Interface
from fembench.ranks.subdomain import Sharing
from fembench.records.phases import ALLREDUCE
from fembench.solve.coarse import pseudo_inverse
from fembench.solve.grids import KINDS, BackgroundGrid
from fembench.solve.levels import Cycle, Level, LevelMatrix, SymArrays, build_cycle, outside
from fembench.solve.operators import Bind, symmetric
from fembench.timing.tracer import NullTracer, Stamps, Traffic, chain

if TYPE_CHECKING:
    from fembench.ranks.comm import Comm
    from fembench.ranks.subdomain import Subdomain
    from fembench.solve.operators import Operator


FIRST = 2.0, 3.0  # spacing of the first grid over a cell: cells alike; of many sizes
SAMPLE = 50_000  # cells whose sizes decide the spacing of the first grid
ALIKE = 1e-3  # relative spread of the sizes of cells that are all alike


class OnOneRank:
    """The small levels, on rank 0: the residual's sum goes there,
    the correction comes back."""

    def __init__(
        self,
        comm: Comm,
        matrix: LevelMatrix,
        grid: BackgroundGrid,
        residual: F64,
        correction: F64,
        tracer: Stamps,
    ) -> None:
        self._comm = comm
        self._residual = residual
        self._correction = correction
        pieces = comm.gather((matrix.numbers, matrix.arrays))
        whole = merged(pieces) if pieces is not None else None
        numbers = comm.bcast(whole.numbers if whole else None)
        self.n_nodes = len(numbers)
        here = np.searchsorted(numbers, matrix.numbers)
        self._dofs = (3 * here[:, None] + np.arange(3)).reshape(-1)
        own = np.zeros(3 * len(numbers))
        total = np.zeros(3 * len(numbers))
        # the calls below hold these, not the object: it ends with its owner
        self._own, self._sum = own, total
        stored = whole.rounded() if whole else None
        self._cycle = _small_cycle(whole, stored.bind, grid) if whole and stored else None
        self.nbytes = 2 * own.nbytes
        self.read = NO_WORK
        if stored and self._cycle:
            self.nbytes += stored.nbytes + self._cycle.nbytes
            self.read = stored.read + self._cycle.read
        traffic = Traffic(ALLREDUCE, (), (own.nbytes,))
        self._gather = chain(tracer, (traffic, lambda: comm.Reduce([own, DOUBLE], [total, DOUBLE], SUM)))
        self._scatter = chain(tracer, (traffic, lambda: comm.Bcast([total, DOUBLE])))
        self._tracer = tracer

    def __call__(self) -> None:
        """The correction from the residual. Collective."""
        self._own[self._dofs] = self._residual
        outside(self._tracer, self._gather)
        if self._cycle is not None:
            top = self._cycle.levels[0]
            top.r[:] = self._sum
            self._cycle.run()
            self._sum[:] = top.z
        outside(self._tracer, self._scatter)
        self._correction[:] = self._sum[self._dofs]


def merged(pieces: Sequence[tuple[I64, SymArrays]]) -> LevelMatrix:
    """The sum of all ranks' matrices, in ascending order, with all nodes interior."""
    numbers = np.unique(np.concatenate([piece for piece, _ in pieces]))
    n, keys, blocks = len(numbers), [], []
    for piece, (indptr, rows, columns, values) in pieces:
        at = np.searchsorted(numbers, piece)
        row = at[np.repeat(rows, np.diff(indptr))]
        column = at[columns]
        keys.append(np.minimum(row, column) * n + np.maximum(row, column))
        blocks.append(np.where((row > column)[:, None, None], values.transpose(0, 2, 1), values))
    pairs, back = np.unique(np.concatenate(keys), return_inverse=True)
    values = kernels.zeros((len(pairs), 3, 3))
    np.add.at(values, back.reshape(-1), np.concatenate(blocks))
    rows = np.arange(n, dtype=np.int32)
    indptr = np.searchsorted(pairs, n * np.arange(n + 1, dtype=np.int64))
    arrays = (indptr, rows, (pairs % n).astype(np.int32), values)
    return LevelMatrix(arrays, n, numbers, np.zeros(3 * n, bool))


def _small_cycle(matrix: LevelMatrix, bind: Bind, grid: BackgroundGrid) -> Cycle:
    """The levels of one rank down to a direct solution, the first multiplied by `bind`;
    not traced by level."""
    comm, one = alone(), np.ones(matrix.n, np.int32)
    tracer = NullTracer()
    interface = Interface(comm, Sharing((), (), one, one.astype(bool)), matrix.n, matrix.n)
    level = Level(bind, matrix.block_diagonal(), matrix.numbers, interface, tracer)
    x = grid.at(matrix.numbers)
    name = matrix.numbers // grid.size
    return build_cycle(matrix, level, x, name, grid.coarser(), tracer, COARSEST_LEVEL, directly)


def directly(matrix: LevelMatrix, grid: BackgroundGrid, residual: F64, correction: F64) -> Callable[[], None]:
    """The dense solution on the coarsest grid."""
    indptr, rows, columns, values = matrix.arrays
    A = np.zeros((matrix.n, 3, matrix.n, 3))
    row = np.repeat(rows, np.diff(indptr))
    A[columns, :, row] = values.transpose(0, 2, 1)
    A[row, :, columns] = values
    inverse = pseudo_inverse(A.reshape(3 * matrix.n, -1))

    def solve() -> None:
        np.matmul(inverse, residual, out=correction)

    return solve


class Multigrid:
    """One V-cycle."""

    identity = False
    inverse: F64 | None = None  # nothing to fold in

    def __init__(self, A: Operator, interface: Interface, sub: Subdomain, tracer: Stamps) -> None:
        comm, n = interface.comm, sub.n_active
        stored = A if A.storage == "sym" else symmetric(sub, A.lam, A.mu)
        fixed = np.ascontiguousarray(sub.fixed)
        indptr, rows, columns, values = stored.arrays
        numbers = sub.global_nodes[:n].astype(np.int64)
        matrix = LevelMatrix((indptr, rows, columns, values), sub.n_interior, numbers, fixed)
        level = Level(A.bind, A.block_diagonal(), matrix.numbers, interface, tracer)
        small: list[OnOneRank] = []

        def on_one_rank(
            coarse: LevelMatrix, grid: BackgroundGrid, residual: F64, correction: F64
        ) -> OnOneRank:
            small.append(OnOneRank(comm, coarse, grid, residual, correction, tracer))
            return small[0]

        name = KINDS * matrix.numbers + kinds_of(A, interface, sub)
        grid = first_grid(comm, sub)
        self._cycle = build_cycle(matrix, level, sub.x[:n], name, grid, tracer, SMALL_LEVEL, on_one_rank)
        tracer.level_nodes = (*(one.n_nodes for one in self._cycle.levels), small[0].n_nodes)
        self.nbytes = self._cycle.nbytes - level.z.nbytes + small[0].nbytes  # of z, the caller's is used
        self.extra = (self._cycle.read + small[0].read) * (2 * SMOOTHING_STEPS)

    def apply(self, r: F64, z: F64) -> None:
        """Overwrite z. Collective."""
        level = self._cycle.levels[0]
        level.work_on(z)
        level.r[:] = r
        self._cycle.run()


def kinds_of(A: Operator, interface: Interface, sub: Subdomain) -> I64:
    """(n_active,) decades, below KINDS, by which a node's stiffest cell is softer than
    the body. Collective."""
    if isinstance(A.mu, float):
        return np.zeros(sub.n_active, np.int64)
    stiffest = np.zeros(sub.n_nodes)
    for corner in sub.cells.T:
        np.maximum.at(stiffest, corner, A.mu)
    stiffest = stiffest[: sub.n_active]
    largest = interface.comm.allreduce(float(stiffest.max(initial=0.0)), MAX)
    copies = interface.copies(np.repeat(stiffest, 3))
    for nodes, (_, theirs) in zip(interface.nodes, copies):
        np.maximum.at(stiffest, nodes, theirs[::3])
    return np.clip(np.log10(largest / stiffest), 0, KINDS - 1).astype(np.int64)


def first_grid(comm: Comm, sub: Subdomain) -> BackgroundGrid:
    """The grid below the mesh: its cells' size times two, or
    three if unequal. Collective.

    Sizes are those of cells whose numbers are multiples of a stride: the same for
    every partition.
    """
    stride = max(comm.allreduce(sub.n_cells) // SAMPLE, 1)
    corners = sub.x[sub.cells[sub.global_cells % stride == 0]]
    sizes = corners.max(axis=1) - corners.min(axis=1)
    sums = np.array([len(sizes), *sizes.sum(axis=0), *(sizes**2).sum(axis=0)])
    low = sub.x.min(axis=0, initial=np.inf)
    high = sub.x.max(axis=0, initial=-np.inf)
    for values, how in ((sums, SUM), (low, MIN), (high, MAX)):
        comm.Allreduce(IN_PLACE, values, how)
    mean = sums[1:4] / sums[0]
    spread = np.sqrt(np.maximum(sums[4:] / sums[0] - mean**2, 0.0)) / mean
    cells = BackgroundGrid(low, mean, np.ceil((high - low) / mean).astype(np.int64) + 1)
    return cells.coarser(FIRST[int((spread > ALIKE).any())])
