"""Conjugate gradients over blocks: solve/cg.py, each line for all blocks in turn.

Inner products are summed in the order of blocks: every rank puts the partial sums of
its blocks into a vector of V numbers, one all-reduce completes it (each entry has a
single non-zero contribution), and all ranks add up the V numbers in the same order.
Therefore residuals do not depend on the owners of the blocks.

Symbols as in solve/cg.py: q = A d, tau = <d, q>, gamma = <r, M r>.

Blocks on one rank share values in memory; each pair of ranks exchanges one message.
A rank adds up all copies of a shared value (those of its blocks and those it
receives) in ascending order of block, once per value, and gives the sum to all of
its blocks. Therefore the result does not depend on the owners of the blocks, and
neighbours on one rank need no copy.

The message from rank p to rank q contains the pairs (block of p, block of
q) in ascending order. Both ranks derive this from the owners of all
blocks, without communication.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fembench.balance.block import Block
from fembench.base.arrays import F64, I32, I64
from fembench.kernels.backend import kernels
from fembench.methods.lookup import storage_of
from fembench.ranks.comm import DOUBLE, Comm, Request, start_and_wait
from fembench.ranks.interface import AllReduce
from fembench.records.phases import AXPY, DOT, SEND, SPMV_INTERFACE, SPMV_INTERIOR, UNPACK, WAIT
from fembench.solve.iterate import breakdown
from fembench.timing.tracer import Stamps, TracerLike, Traffic, chain

_TAG = 8


class _SharedPair(NamedTuple):
    """The nodes that a block of this rank shares with a block of another rank."""

    own: int
    other: int
    nodes: I32  # numbers in the rank's own block


class BlockExchange:
    """One rank's exchange plan for one distribution of the blocks; sums the blocks' q.

    `send` and `receive` are steps of a chain (timing/tracer.py).
    Collective over neighbours.
    """

    def __init__(self, comm: Comm, blocks: Mapping[int, Block], owner: I64, tracer: Stamps) -> None:
        self._comm = comm
        self._tracer = tracer
        self._blocks = dict(sorted(blocks.items()))
        pairs = _pairs(self._blocks, owner, comm.rank)
        n = 3 * sum(pair.nodes.size for by_rank in pairs.values() for pair in by_rank)
        self._out = np.empty(n)
        self._in = np.empty(n)
        self._requests = self._persistent(pairs)
        add = self._sum(pairs).run
        self.send: tuple[Any, ...]
        self.receive: tuple[tuple[Any, ...], ...]
        if self._requests:
            start, wait = start_and_wait(self._requests)
            ranks = tuple(pairs)
            n_bytes = tuple(24 * sum(pair.nodes.size for pair in pairs[rank]) for rank in ranks)
            self.send = (Traffic(SEND, ranks, n_bytes), self._gather(pairs).run, start)
            self.receive = ((Traffic(WAIT, ranks, n_bytes), wait), (UNPACK, add))
        else:
            self.send = (SEND,)
            self.receive = ((WAIT,), (UNPACK, add))

    def update(self) -> None:
        """Sum q of all blocks over their sharers."""
        chain(self._tracer, self.send, *self.receive)()

    def close(self) -> None:
        """Free the persistent requests."""
        for request in self._requests:
            request.Free()
        self._requests = []

    def _persistent(self, pairs: dict[int, list[_SharedPair]]) -> list[Request]:
        receive, send, begin = [], [], 0
        for rank, members in pairs.items():
            end = begin + 3 * sum(pair.nodes.size for pair in members)
            receive.append(self._comm.Recv_init([self._in[begin:end], DOUBLE], rank, _TAG))
            send.append(self._comm.Send_init([self._out[begin:end], DOUBLE], rank, _TAG))
            begin = end
        return receive + send

    def _gather(self, pairs: dict[int, list[_SharedPair]]) -> Any:
        """The kernel that copies what other ranks need of q into the messages."""
        place = {i: k for k, i in enumerate(self._blocks)}
        members = [pair for by_rank in pairs.values() for pair in sorted(by_rank, key=lambda p: p[:2])]
        vector = np.repeat([place[p.own] for p in members], [p.nodes.size for p in members])
        node = np.concatenate([p.nodes for p in members])
        vectors = [block.q for block in self._blocks.values()]
        return kernels.Gather(vectors, vector.astype(np.int32), node, self._out)

    def _sum(self, pairs: dict[int, list[_SharedPair]]) -> Any:
        """The kernel that sums the interface values of the blocks and those received.

        By node, and in the order of blocks.

        A value that was received twice, for two blocks of this rank, counts once.
        """
        nodes, block, vector, index = [], [], [], []
        for k, (i, b) in enumerate(self._blocks.items()):
            own = np.arange(b.n_interior, b.n_active)
            nodes.append(b.arrays["global_nodes"][own])
            block.append(np.full(own.size, i))
            vector.append(np.full(own.size, k))
            index.append(own)
        members = [p for by_rank in pairs.values() for p in sorted(by_rank, key=lambda p: (p.other, p.own))]
        for p in members:
            nodes.append(self._blocks[p.own].arrays["global_nodes"][p.nodes])
            block.append(np.full(p.nodes.size, p.other))
        n = self._in.size // 3
        vector.append(np.full(n, len(self._blocks)))
        index.append(np.arange(n))
        return _grouped(
            [*(b.q for b in self._blocks.values()), self._in],
            *(np.concatenate([*parts, np.zeros(0, np.int64)]) for parts in (nodes, block, vector, index)),
        )


def _pairs(blocks: Mapping[int, Block], owner: I64, rank: int) -> dict[int, list[_SharedPair]]:
    """{other rank: pairs of blocks that share nodes}, ranks ascending."""
    pairs: dict[int, list[_SharedPair]] = {}
    for i, block in blocks.items():
        for other, nodes in zip(block.neighbours, block.nodes):
            pairs.setdefault(int(owner[other]), []).append(_SharedPair(i, other, nodes))
    pairs.pop(rank, None)
    return dict(sorted(pairs.items()))


def _grouped(vectors: list, nodes: NDArray, block: NDArray, vector: NDArray, index: NDArray) -> Any:
    """The kernel that sums the values of each node, with only one value per block."""
    order = np.lexsort((block, nodes))
    nodes, block = nodes[order], block[order]
    new = np.ones(nodes.size, bool)
    new[1:] = (nodes[1:] != nodes[:-1]) | (block[1:] != block[:-1])
    order, nodes = order[new], nodes[new]
    begins = np.flatnonzero(np.diff(nodes, prepend=-1))
    ends = np.append(begins, nodes.size).astype(np.int64)
    return kernels.SharedSum(vectors, vector[order].astype(np.int32), index[order].astype(np.int32), ends)


class Between(Protocol):
    """Action between two iterations."""

    def after(self, iteration: int, rr: float) -> bool:
        """Look; return whether any block of the job has moved. Collective."""


class BlockSolver:
    """The blocks of one rank, bound for iterations; rebound after blocks have moved."""

    def __init__(
        self,
        comm: Comm,
        blocks: dict[int, Block],
        owner: I64,
        tracer: TracerLike,
        *,
        overlap: bool = True,
        clocked: bool = False,
    ) -> None:
        self.comm = comm
        self.blocks = blocks
        self.owner = owner
        self._tracer = tracer
        self._overlap = overlap
        self._clocked = clocked
        self.folded = False
        self.seconds = np.zeros(owner.size)  # processor time of products by block
        self._tau = AllReduce(comm, owner.size, tracer)
        self._rho = AllReduce(comm, owner.size, tracer)
        self.outside: I64
        self.x = np.zeros(0)
        self.between: Between | None = None
        self._bind()

    def rebind(self) -> None:
        """Rebuild exchange plan and kernel calls for the current blocks of this rank."""
        self.exchange.close()
        self.blocks = dict(sorted(self.blocks.items()))
        self._bind()

    def _bind(self) -> None:
        begin = time.perf_counter()
        blocks = list(self.blocks.values())
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
        """Yield <r, r> as solve.iterate does; `loads` by block, unsummed. Collective."""
        rr, gamma = self._start(loads)
        yield rr
        done, beta = 0, 0.0
        after = self.between.after if self.between is not None else _stay
        while gamma != 0.0:
            begin = self._tracer.begin
            end = self._tracer.end
            direction = self._all.direction
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
        """A function: x += alpha d, r -= alpha q; (<r, r>, <r, M r>) by one all-reduce."""
        begin = self._tracer.begin
        end = self._tracer.end
        move = self._all.step
        n = self.owner.size
        reduce = self._rho.run
        sums = self._rho.values
        folded = self.folded

        def step(alpha: float) -> tuple[float, float]:
            begin(AXPY)
            move(alpha)
            end(AXPY)
            reduce()
            rr = sum(sums[:n])
            return rr, sum(sums[n:]) if folded else rr

        return step

    def _multiply(self) -> Callable[[], float]:
        """A function: q = A d, block by block, summed over sharers; returns <d, q>."""
        outer = (SPMV_INTERFACE, self._all.interface)
        inner = (SPMV_INTERIOR, self._all.interior)
        send = self.exchange.send
        receive = self.exchange.receive
        steps = [outer, send, inner, *receive] if self._overlap else [outer, inner, send, *receive]
        if not all(storage_of(block.storage).fused for block in self.blocks.values()):
            steps.append((DOT, self._all.dot))
        product = chain(self._tracer, *steps)
        reduce = self._tau.run
        parts = self._tau.values

        def multiply() -> float:
            product()
            reduce()
            return sum(parts)

        return multiply


def _stay(iteration: int, rr: float) -> bool:
    """No action between iterations."""
    return False
