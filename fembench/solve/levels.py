"""The levels of a multigrid on a communicator: matrix, smoother, transfer (multigrid.py)."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import numpy as np
from msgspec import Struct, structs

from fembench.base.arrays import F64, I32, I64, Mask
from fembench.kernels.backend import kernels
from fembench.methods.preconditioners import SMOOTHING_STEPS
from fembench.methods.steps import NO_WORK, Work
from fembench.ranks.interface import Interface
from fembench.records.phases import PRECOND
from fembench.solve.grids import BackgroundGrid, Prolongator, prolongator
from fembench.solve.operators import Bind, bind_arrays, diagonal_of
from fembench.solve.precond import chebyshev_coefficients, hashed, largest_eigenvalue, summed_blocks
from fembench.timing.tracer import Stamps

SymArrays = tuple[I64, I32, I32, F64]  # indptr, rows, columns, values of storage sym

RATIO = 10.0  # largest over smallest eigenvalue that the smoother damps
SINGULAR = 1e-9  # of a 3x3 block's mean eigenvalue: one that counts as zero


class LevelMatrix(Struct, frozen=True):
    """One level's matrix on one rank, unsummed on its interface."""

    arrays: SymArrays
    n_interior: int  # nodes
    numbers: I64  # (n,) global numbers of the nodes
    fixed: Mask  # (3 n,) dofs with a diagonal of one that belongs to no cell

    @property
    def n(self) -> int:
        return len(self.numbers)

    def rounded(self) -> LevelMatrix:
        """The same with values in single precision."""
        indptr, rows, columns, values = self.arrays
        single = kernels.empty(values.shape, "float32")
        single[:] = values
        return structs.replace(self, arrays=(indptr, rows, columns, single))

    @property
    def bind(self) -> Bind:
        return bind_arrays("sym", self.arrays, self.n_interior)

    @property
    def nbytes(self) -> int:
        """Of all arrays."""
        return sum(array.nbytes for array in self.arrays)

    @property
    def read(self) -> Work:
        """Of one product, coarse vectors apart."""
        values = self.arrays[3]
        return Work(2 * values.size, values.nbytes)

    def block_diagonal(self) -> F64:
        """(n, 3, 3), unsummed."""
        return diagonal_of(self.arrays)


def outside(tracer: Stamps, communicate: Callable[[], object]) -> None:
    """Communicate in a span of its own, not in that of the preconditioner."""
    tracer.end(PRECOND)
    communicate()
    tracer.begin(PRECOND)


class Level:
    """One level: vectors, smoother and neighbour sums, bound to each other."""

    def __init__(
        self,
        bind: Bind,
        blocks: F64,
        numbers: I64,
        interface: Interface,
        tracer: Stamps,
    ) -> None:
        self.interface = interface
        self._tracer = tracer
        n = interface.n_dofs
        self.n_nodes = round(interface.total((interface.first_dof + interface.weights.sum()) / 3))
        self.z, self.r, self.d, self.q = (kernels.zeros(n) for _ in range(4))
        self._product = bind(self.d, self.q)
        self._sum_q, self._sum_r = interface.bind(self.q, tracer), interface.bind(self.r, tracer)
        exact = inverse_of(summed_blocks(blocks, interface))
        inverse = kernels.empty(exact.shape, "float32")
        inverse[:] = exact
        self.r[:] = hashed(numbers)
        vectors = self.z, self.r, self.d, self.q
        largest = 1.1 * largest_eigenvalue(self._product, interface, exact, *vectors)
        self._coefficients = chebyshev_coefficients(largest / RATIO, largest, SMOOTHING_STEPS)
        self._inverse = inverse
        self.nbytes = 4 * self.z.nbytes + inverse.nbytes
        self._step = kernels.Chebyshev(self.z, self.r, self.d, self.q, inverse)

    def work_on(self, z: F64) -> None:
        """Let z be a vector of the caller's, which saves one here."""
        if self.z is not z:
            self.z, self._step = z, kernels.Chebyshev(z, self.r, self.d, self.q, self._inverse)

    def smooth(self) -> None:
        """From z = 0: z = p(D^-1 A) D^-1 r; r becomes the residual of z. Collective."""
        (_, gain), *steps = self._coefficients
        self._step.start(gain)
        for keep, gain in steps:
            self._multiply()
            self._step.run(keep, gain)
        self._multiply()
        self.r -= self.q

    def correct(self) -> None:
        """With a correction in d: z += d, then as many smoothing steps. Collective."""
        self.z += self.d
        for keep, gain in self._coefficients:
            self._multiply()
            self._step.run(keep, gain)

    def sum_residual(self) -> None:
        """Sum r over the sharers of each value. Collective over neighbours."""
        outside(self._tracer, self._sum_r.start)
        outside(self._tracer, self._sum_r.finish)

    def _multiply(self) -> None:
        """q = A d, summed."""
        self._product.interface()
        outside(self._tracer, self._sum_q.start)
        self._product.interior()
        outside(self._tracer, self._sum_q.finish)


def inverse_of(blocks: F64) -> F64:
    """(n, 6) inverses of symmetric blocks (n, 3, 3), as xx yy zz xy yz zx; or
    pseudo-inverses.

    A grid node whose fine nodes are all restrained in one direction has a singular block.
    """
    (xx, xy, zx), (_, yy, yz), (_, _, zz) = blocks.transpose(1, 2, 0)
    minors = [yy * zz - yz**2, xx * zz - zx**2, xx * yy - xy**2]
    minors += [yz * zx - xy * zz, xy * zx - xx * yz, xy * yz - yy * zx]
    determinant = xx * minors[0] + xy * minors[3] + zx * minors[5]
    regular = determinant > SINGULAR * ((xx + yy + zz) / 3) ** 3
    inverse = np.column_stack(minors) / np.where(regular, determinant, 1.0)[:, None]
    inverse[~regular] = _pseudo_inverses(blocks[~regular])
    return inverse


def _pseudo_inverses(blocks: F64) -> F64:
    values, vectors = np.linalg.eigh(blocks)
    good = values > SINGULAR * values[:, -1:]
    inverse = np.where(good, 1.0 / np.where(good, values, 1.0), 0.0)
    full = np.einsum("nik,nk,njk->nij", vectors, inverse, vectors)
    return full[:, [0, 1, 2, 0, 1, 2], [0, 1, 2, 1, 2, 0]]


class BoundTransfer:
    """From a level to the grid below it and back."""

    def __init__(
        self,
        P: Prolongator,
        fine: Level,
        fixed: Mask,
        residual: F64,
        correction: F64,
    ) -> None:
        self._fine = fine
        self._fixed = np.flatnonzero(fixed)
        weights = fine.interface.weights
        self.nbytes = P.parent.nbytes + P.weight.nbytes
        self.restrict = kernels.Transfer(P.parent, P.weight, weights, fine.r, residual, fine.d).restrict
        self._prolong = kernels.Transfer(P.parent, P.weight, weights, fine.r, correction, fine.d).prolong

    def prolong(self) -> None:
        """The correction as the fine level's d."""
        self._prolong()
        if self._fixed.size:
            self._fine.d[self._fixed] = 0.0


class Cycle(Struct, frozen=True):
    """The levels of one communicator, finest first, and what solves below the last."""

    levels: tuple[Level, ...]
    transfers: tuple[BoundTransfer, ...]
    bottom: Callable[[], None]
    read: Work  # of one product with each coarse matrix of this rank
    nbytes: int  # held on this rank, the matrix of the first level apart
    tracer: Stamps

    def run(self) -> None:
        """One V-cycle: the z of the first level from its r. Collective."""
        pairs = list(enumerate(zip(self.levels, self.transfers), 1))
        for k, (level, transfer) in pairs:
            self.tracer.enter(k, PRECOND)
            if k > 1:
                level.sum_residual()
            level.smooth()
            transfer.restrict()
        self.tracer.enter(len(pairs) + 1, PRECOND)
        self.bottom()
        for k, (level, transfer) in reversed(pairs):
            self.tracer.enter(k, PRECOND)
            transfer.prolong()
            level.correct()
        self.tracer.enter(0, PRECOND)


Solve = Callable[[LevelMatrix, BackgroundGrid, F64, F64], Callable[[], None]]


def build_cycle(
    matrix: LevelMatrix,
    level: Level,
    x: F64,
    name: I64,
    grid: BackgroundGrid,
    tracer: Stamps,
    most: int,
    solve: Solve,
) -> Cycle:
    """Levels down to the first grid of at most `most` nodes, which
    `solve` takes. Collective.

    solve(matrix, grid, residual, correction) returns what computes
    the correction on that grid.
    """
    comm = level.interface.comm
    levels, transfers, read, held = [level], [], NO_WORK, 0
    while True:
        P = prolongator(level.interface, grid, x, name, matrix.arrays[:3])
        arrays = kernels.galerkin(*matrix.arrays, matrix.fixed, P.parent, P.weight, P.n_coarse, P.n_interior)
        coarse = LevelMatrix(arrays, P.n_interior, P.numbers, np.zeros(3 * P.n_coarse, bool))
        if comm.allreduce(int(P.sharing.owned.sum())) <= most:
            residual = kernels.zeros(3 * P.n_coarse)
            correction = kernels.zeros(3 * P.n_coarse)
            transfers.append(BoundTransfer(P, level, matrix.fixed, residual, correction))
            bottom = solve(coarse, grid, residual, correction)
            held += sum(one.nbytes for one in levels) + sum(one.nbytes for one in transfers)
            return Cycle(tuple(levels), tuple(transfers), bottom, read, held, tracer)
        interface = Interface(comm, P.sharing, P.n_interior, P.n_coarse)
        stored = coarse.rounded()
        read, held = read + stored.read, held + stored.nbytes
        below = Level(stored.bind, coarse.block_diagonal(), P.numbers, interface, tracer)
        weakref.finalize(below, interface.close).atexit = False  # frees its requests
        transfers.append(BoundTransfer(P, level, matrix.fixed, below.r, below.z))
        levels.append(below)
        matrix = coarse
        level = below
        x = grid.at(P.numbers)
        name = P.numbers // grid.size
        grid = grid.coarser()
