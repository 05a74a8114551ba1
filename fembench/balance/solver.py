"""Conjugate gradients over blocks: the loop of solve/cg.py, each line of it done for block after block.

Inner products are summed in the order of blocks: every rank puts its blocks' partial sums into their places
in a vector of V numbers, one all-reduce completes it (each place has one contribution that is not zero), and
everybody adds up the V numbers in the same order. So residuals do not depend on which rank has which block.

Symbols as in solve/cg.py: q = A d, tau = <d, q>, gamma = <r, M r>.
"""

import time
from collections.abc import Callable, Iterator
from math import inf
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fembench.balance.block import Block
from fembench.balance.exchange import Exchange
from fembench.dist.comm import Comm
from fembench.dist.interface import AllReduce
from fembench.solve.iterate import breakdown
from fembench.timing.phases import AXPY, DOT, SPMV_INTERFACE, SPMV_INTERIOR
from fembench.timing.tracer import TracerLike

F64 = NDArray[np.float64]
Call = Callable[[], None]


class Between(Protocol):
    """What may happen between two iterations."""

    def after(self, iteration: int, rr: float) -> bool:
        """Look, and move blocks; whether the blocks of this job have changed places. Collective."""


class BlockSums:
    """Sums over all blocks of `count` numbers a block, in the order of blocks."""

    def __init__(self, comm: Comm, n_blocks: int, count: int, tracer: TracerLike) -> None:
        self._n, self._count = n_blocks, count
        self._reduce = AllReduce(comm, n_blocks * count, tracer)
        self._zeros = self._reduce.values[:]
        self.values = self._reduce.values

    def run(self) -> float:
        """The sum of the first number over blocks. Collective."""
        return sum(self._reduce.run()[: self._n])

    def clear(self) -> None:
        """Every place to zero, before the own ones are filled."""
        self.values[:] = self._zeros

    def second(self) -> float:
        """The sum of the second number over blocks, after run()."""
        return sum(self.values[self._n :])


class BlockSolver:
    """The blocks of one rank, bound for iterations; bound anew when blocks have moved."""

    def __init__(
        self,
        comm: Comm,
        blocks: dict[int, Block],
        owner: NDArray[np.int64],
        tracer: TracerLike,
        *,
        overlap: bool = True,
        clocked: bool = False,
    ) -> None:
        self.comm, self.blocks, self.owner, self._tracer = comm, blocks, owner, tracer
        self._overlap, self._clocked = overlap, clocked
        self.folded = False
        self.seconds = np.zeros(owner.size)  # of products by block, processor time since cleared
        self._tau = BlockSums(comm, owner.size, 1, tracer)
        self._rho = BlockSums(comm, owner.size, 1, tracer)
        self.outside: NDArray[np.int64]
        self.x = np.zeros(0)
        self.between: Between | None = None
        self.exchange = Exchange(comm, blocks, owner, tracer)

    def rebind(self) -> None:
        """Plans and calls for the blocks that are here now."""
        self.exchange.close()
        self.blocks = dict(sorted(self.blocks.items()))
        self.exchange = Exchange(self.comm, self.blocks, self.owner, self._tracer)

    def precondition(self, make: Callable[[Block], F64]) -> None:
        """Fold D^-1 in: `make` turns the summed diagonal in a block's q into its inverse."""
        for block in self.blocks.values():
            block.precondition(make(block))
        self.folded = True
        self._rho = BlockSums(self.comm, self.owner.size, 2, self._tracer)

    def iterations(self, loads: dict[int, F64]) -> Iterator[float]:
        """Yields <r, r> as a Method of solve.iterate does; `loads` by block, unsummed. Collective."""
        rr, gamma = self._start(loads)
        yield rr
        done, beta = 0, 0.0
        while gamma != 0.0:
            multiply, direction, step = self._multiply(), self._direction(), self._step()
            moved = False
            while gamma != 0.0 and not moved:
                if not 0.0 < gamma < inf:
                    raise breakdown("<r, M r>", gamma, done + 1)
                direction(beta)
                tau = multiply()
                if not 0.0 < tau < inf:
                    raise breakdown("<d, A d>", tau, done + 1)
                old = gamma
                rr, gamma = step(old / tau)
                beta = gamma / old
                done += 1
                yield rr
                if self.between is not None:
                    moved = self.between.after(done, rr)

    def _start(self, loads: dict[int, F64]) -> tuple[float, float]:
        """x = 0, d = 0, r = sum of the loads; (<r, r>, <r, M r>)."""
        for i, block in self.blocks.items():
            block.q[:] = loads[i]
        self.exchange.update()
        for block in self.blocks.values():
            block.x[:] = 0.0
            block.d[:] = 0.0
            block.r[:] = block.q
        return self._step()(0.0)

    def _direction(self) -> Callable[[float], None]:
        begin, end = self._tracer.begin, self._tracer.end
        calls = [block.vectors.direction for block in self.blocks.values()]

        def direction(beta: float) -> None:
            begin(AXPY)
            for call in calls:
                call(beta)
            end(AXPY)

        return direction

    def _step(self) -> Callable[[float], tuple[float, float]]:
        """x += alpha d, r -= alpha q: (<r, r>, <r, M r>) by one all-reduce."""
        begin, end, sums, n = self._tracer.begin, self._tracer.end, self._rho, self.owner.size
        values, clear, run, second = sums.values, sums.clear, sums.run, sums.second
        plain = [(i, block.vectors.step) for i, block in self.blocks.items()]
        both = [(i, block.vectors.step_jacobi) for i, block in self.blocks.items()]

        def alone(alpha: float) -> tuple[float, float]:
            begin(AXPY)
            clear()
            for i, call in plain:
                values[i] = call(alpha)
            end(AXPY)
            rr = run()
            return rr, rr

        def folded(alpha: float) -> tuple[float, float]:
            begin(AXPY)
            clear()
            for i, call in both:
                values[i], values[n + i] = call(alpha)
            end(AXPY)
            return run(), second()

        return folded if self.folded else alone

    def _multiply(self) -> Callable[[], float]:
        """q = A d summed over sharers, block after block; returns <d, q>."""
        begin, end, sums = self._tracer.begin, self._tracer.end, self._tau
        values, clear, run = sums.values, sums.clear, sums.run
        fused = all(block.storage in FUSED for block in self.blocks.values())
        outer = self._each([(i, block.product.interface) for i, block in self.blocks.items()])
        inner = self._each([(i, block.product.interior) for i, block in self.blocks.items()])
        dots = [(i, block.vectors.dot_dq) for i, block in self.blocks.items()]
        start, finish, overlap = self.exchange.start, self.exchange.finish, self._overlap

        def multiply() -> float:
            clear()
            begin(SPMV_INTERFACE)
            outer(values, fused)
            end(SPMV_INTERFACE)
            if overlap:
                start()
            begin(SPMV_INTERIOR)
            inner(values, fused)
            end(SPMV_INTERIOR)
            if not overlap:
                start()
            finish()
            if not fused:
                begin(DOT)
                for i, call in dots:
                    values[i] = call()
                end(DOT)
            return run()

        return multiply

    def _each(self, calls: list) -> Callable:
        """Every block's part of a product; with the processor time of each where it is wanted."""
        spent, clock = self.seconds, time.thread_time_ns

        def plain(values, fused: bool) -> None:
            for i, call in calls:
                part = call()
                if fused:
                    values[i] += part

        def clocked(values, fused: bool) -> None:
            before = clock()
            for i, call in calls:
                part = call()
                if fused:
                    values[i] += part
                now = clock()
                spent[i] += now - before
                before = now

        return clocked if self._clocked else plain


FUSED = ("sym", "bsr", "ebe")
