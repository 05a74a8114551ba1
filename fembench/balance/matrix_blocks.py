"""The blocks of a solver for the balancer: timed by the tracer, moved with their matrices."""

import math
import time

import numpy as np

from fembench.balance.block import receive, send
from fembench.balance.driver import BlockFacts, Measured, Route
from fembench.balance.solver import BlockSolver
from fembench.base.arrays import F64, I64
from fembench.ranks.comm import Comm
from fembench.records.phases import AXPY, DOT, PRECOND, SPMV_INTERFACE, SPMV_INTERIOR
from fembench.synthetic.slowness import Slowness
from fembench.synthetic.speeds import HotSpot, weights_at
from fembench.timing.tracer import TracerLike

COMPUTING = [SPMV_INTERFACE, SPMV_INTERIOR, DOT, AXPY, PRECOND]


class MatrixBlocks:
    """The blocks of `solver` that are currently on this rank."""

    def __init__(
        self,
        comm: Comm,
        solver: BlockSolver,
        facts: BlockFacts,
        tracer: TracerLike,
        slowness: Slowness,
        spots: tuple[HotSpot, ...] = (),
    ) -> None:
        self._comm = comm
        self._solver = solver
        self._facts = facts
        self._tracer = tracer
        self._slowness = slowness
        self._spots = spots
        self.per_move = solver.bind_seconds  # until a move has been measured
        self._ticks = self._since = self._from = 0
        self._carried = 0.0  # bytes of matrices x iterations

    @property
    def owner(self) -> I64:
        """(V,) the rank of every block."""
        return self._solver.owner

    def begin(self) -> None:
        """Tell the emulation how much work the blocks of this rank are."""
        blocks = self._solver.blocks.values()
        nodes = sum(b.n_active for b in blocks)
        inner = sum(b.n_interior for b in blocks)
        product = {SPMV_INTERIOR: max(inner, 1), SPMV_INTERFACE: max(nodes - inner, 1)}
        if blocks:
            heavier = {s.at: sum(s.weights[b.id] * b.n_active for b in blocks) / nodes for s in self._spots}
            self._slowness.new_work("blocks", dict.fromkeys(COMPUTING, nodes) | product, heavier)
        else:
            self._slowness.new_work("no blocks")

    def open(self, iteration: int) -> None:
        """Begin a window of measurements after this number of iterations."""
        self._from = iteration
        self._ticks = self._computing()
        self._solver.seconds[:] = 0.0

    def _computing(self) -> int:
        return int(self._tracer.ticks()[COMPUTING].sum())

    def measured(self, iterations: int) -> Measured:
        """This rank's computing time, divided among its blocks.

        In proportion to the processor time of their products, or to their work if that was too short
        to be measured, times their weights in hot spots.
        """
        ids = list(self._solver.blocks)
        compute = (self._computing() - self._ticks) / self._tracer.ticks_per_second / iterations
        parts = self._solver.seconds[ids]
        weight = parts if parts.sum() > 0 else self._facts.work[ids]
        weight = weight * self.weights(iterations)[ids]
        seconds = compute * weight / weight.sum() if ids else parts
        return Measured(ids, seconds.tolist(), [block.size for block in self._solver.blocks.values()])

    def weights(self, iterations: int) -> F64:
        """(V,) mean weight of each block in the iterations since the window began."""
        window = range(self._from, self._from + iterations)
        n = self.owner.size
        return np.mean([weights_at(self._spots, k, n) for k in window], axis=0)

    def agree(self) -> None:
        """Make emulated ranks of a host differ by speeds and blocks alone. Collective."""
        blocks = self._solver.blocks.values()
        units = {
            "assembly": sum(len(b.arrays["cells"]) for b in blocks),
            "product": sum(b.flops for b in blocks),
            "vectors": sum(b.n_active for b in blocks),
        }
        self._slowness.agree(self._comm, units)

    def move(self, routes: list[Route], iteration: int) -> None:
        """Move blocks, and measure what a move costs beyond its bytes. Collective."""
        begin = time.perf_counter()
        self.carried(iteration)
        migrate(self._comm, self._solver, routes)
        self.begin()
        size = self._facts.size
        per_byte = self._facts.pairs.per_byte
        on_the_wire = sum(size[block] * per_byte[target, source] for block, source, target in routes)
        self.per_move = max(0.0, time.perf_counter() - begin - on_the_wire) / len(routes)

    def carried(self, iteration: int) -> float:
        """Bytes of matrices on this rank, summed over all iterations up to this one."""
        held = sum(block.matrix_bytes for block in self._solver.blocks.values())
        self._carried += held * (iteration - self._since)
        self._since = iteration
        return self._carried


def migrate(comm: Comm, solver: BlockSolver, routes: list[Route]) -> int:
    """Send and receive blocks, rebind the local ones; the bytes sent. Collective.

    All ranks process the routes in the same order, which excludes deadlocks.
    """
    sent = 0
    for block, source, target in routes:
        if comm.rank == source:
            sent += send(comm, solver.blocks.pop(block), target)
        elif comm.rank == target:
            solver.blocks[block] = receive(comm, source)
        solver.owner[block] = target
    solver.rebind()
    return sent


def expected(iteration: int, residual: float, first: float, target: float, limit: int) -> int:
    """Iterations to come, up to the limit, if the residual falls at its mean rate."""
    left = limit - iteration
    if target <= 0 or residual >= first or residual <= 0:
        return max(left, 0)
    rate = math.log(first / residual) / iteration
    return max(0, min(left, math.ceil(math.log(max(residual / target, 1.0)) / rate)))
