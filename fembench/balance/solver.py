"""Conjugate gradients over blocks: the loop of solve/cg.py, with each line executed for all blocks in turn.

Inner products are summed in the order of blocks: every rank puts the partial sums of its blocks into a vector
of V numbers, one all-reduce completes it (each entry has a single non-zero contribution), and all ranks add
up the V numbers in the same order. Therefore residuals do not depend on the owners of the blocks.

Symbols as in solve/cg.py: q = A d, tau = <d, q>, gamma = <r, M r>.
"""

import time
from collections.abc import Callable, Iterator
from math import inf
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fembench.balance.block import Block
from fembench.balance.exchange import BlockExchange
from fembench.kernels.backend import kernels
from fembench.methods.lookup import storage_of
from fembench.ranks.comm import Comm
from fembench.ranks.interface import AllReduce
from fembench.records.phases import AXPY, DOT, SPMV_INTERFACE, SPMV_INTERIOR
from fembench.solve.iterate import breakdown
from fembench.timing.tracer import TracerLike, chain

F64 = NDArray[np.float64]


class Between(Protocol):
    """Action between two iterations."""

    def after(self, iteration: int, rr: float) -> bool:
        """Look, and possibly move blocks; return whether any block of the job has moved. Collective."""


class BlockSolver:
    """The blocks of one rank, bound for iterations; rebound after blocks have moved."""

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
        self.seconds = np.zeros(owner.size)  # processor time of products by block, since it was cleared
        self._tau = AllReduce(comm, owner.size, tracer)
        self._rho = AllReduce(comm, owner.size, tracer)
        self.outside: NDArray[np.int64]
        self.x = np.zeros(0)
        self.between: Between | None = None
        self._bind()

    def rebind(self) -> None:
        """Rebuild exchange plan and kernel calls for the current blocks of this rank."""
        self.exchange.close()
        self.blocks = dict(sorted(self.blocks.items()))
        self._bind()

    def _bind(self) -> None:
        begin, blocks = time.perf_counter(), list(self.blocks.values())
        self.exchange = BlockExchange(self.comm, self.blocks, self.owner, self._tracer)
        self._all = kernels.Blocks(
            np.array([b.id for b in blocks], np.int64),
            [b.product for b in blocks],
            [b.vectors for b in blocks],
            self._tau.values,
            self._rho.values,
            self.seconds if self._clocked else None,
        )
        self.bind_seconds = time.perf_counter() - begin

    def precondition(self, make: Callable[[Block], F64]) -> None:
        """Fold in D^-1; `make` returns that of a block."""
        for block in self.blocks.values():
            block.precondition(make(block))
        self.folded = True
        self._rho = AllReduce(self.comm, 2 * self.owner.size, self._tracer)
        self.rebind()

    def iterations(self, loads: dict[int, F64]) -> Iterator[float]:
        """Yield <r, r> like a Recurrence of solve.iterate; `loads` by block, unsummed. Collective."""
        rr, gamma = self._start(loads)
        yield rr
        done, beta = 0, 0.0
        after = self.between.after if self.between is not None else _stay
        while gamma != 0.0:
            begin, end, direction = self._tracer.begin, self._tracer.end, self._all.direction
            multiply, step = self._multiply(), self._step()
            moved = False
            while gamma != 0.0 and not moved:
                if not 0.0 < gamma < inf:
                    raise breakdown("<r, M r>", gamma, done + 1)
                begin(AXPY)
                direction(beta)
                end(AXPY)
                tau = multiply()
                if not 0.0 < tau < inf:
                    raise breakdown("<d, A d>", tau, done + 1)
                old = gamma
                rr, gamma = step(old / tau)
                beta = gamma / old
                done += 1
                yield rr
                moved = after(done, rr)

    def _start(self, loads: dict[int, F64]) -> tuple[float, float]:
        """Set x = 0, d = 0, r = sum of the loads; return (<r, r>, <r, M r>)."""
        for i, block in self.blocks.items():
            block.q[:] = loads[i]
        self.exchange.update()
        for block in self.blocks.values():
            block.x[:] = 0.0
            block.d[:] = 0.0
            block.r[:] = block.q
        return self._step()(0.0)

    def _step(self) -> Callable[[float], tuple[float, float]]:
        """A function: x += alpha d, r -= alpha q; returns (<r, r>, <r, M r>), by one all-reduce."""
        begin, end, move, n = self._tracer.begin, self._tracer.end, self._all.step, self.owner.size
        reduce, sums, folded = self._rho.run, self._rho.values, self.folded

        def step(alpha: float) -> tuple[float, float]:
            begin(AXPY)
            move(alpha)
            end(AXPY)
            reduce()
            rr = sum(sums[:n])
            return rr, sum(sums[n:]) if folded else rr

        return step

    def _multiply(self) -> Callable[[], float]:
        """A function that computes q = A d, summed over sharers, block by block, and returns <d, q>."""
        outer, inner = (SPMV_INTERFACE, self._all.interface), (SPMV_INTERIOR, self._all.interior)
        send, receive = self.exchange.send, self.exchange.receive
        steps = [outer, send, inner, *receive] if self._overlap else [outer, inner, send, *receive]
        if not all(storage_of(block.storage).fused for block in self.blocks.values()):
            steps.append((DOT, self._all.dot))
        product, reduce, parts = chain(self._tracer, *steps), self._tau.run, self._tau.values

        def multiply() -> float:
            product()
            reduce()
            return sum(parts)

        return multiply


def _stay(iteration: int, rr: float) -> bool:
    """No action between iterations."""
    return False
