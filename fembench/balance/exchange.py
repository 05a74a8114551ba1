"""The neighbour sum between blocks: in memory on one rank, by one message per pair of ranks otherwise.

A rank adds up all copies of a shared value (those of its blocks and those it receives) in ascending order of
block, once per value, and gives the sum to all of its blocks. Therefore the result does not depend on the
owners of the blocks, and neighbours on one rank need no copy.

The message from rank p to rank q contains the pairs (block of p, block of q) in ascending order. Both ranks
derive this from the owners of all blocks, without communication.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fembench.balance.block import Block
from fembench.kernels.backend import kernels
from fembench.ranks.comm import DOUBLE, Comm, Request, start_and_wait
from fembench.records.phases import SEND, UNPACK, WAIT
from fembench.timing.tracer import Stamps, Traffic, chain

I32 = NDArray[np.int32]
_TAG = 8


class _SharedPair(NamedTuple):
    """The nodes that a block of this rank shares with a block of another rank."""

    own: int
    other: int
    nodes: I32  # numbers in the rank's own block


class BlockExchange:
    """One rank's exchange plan for one distribution of the blocks; sums the blocks' q.

    `send` and `receive` are steps of a chain (timing/tracer.py). Collective over neighbours.
    """

    def __init__(
        self, comm: Comm, blocks: Mapping[int, Block], owner: NDArray[np.int64], tracer: Stamps
    ) -> None:
        self._comm, self._tracer, self._blocks = comm, tracer, dict(sorted(blocks.items()))
        pairs = _pairs(self._blocks, owner, comm.rank)
        n = 3 * sum(pair.nodes.size for by_rank in pairs.values() for pair in by_rank)
        self._out, self._in = np.empty(n), np.empty(n)
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
            self.send, self.receive = (SEND,), ((WAIT,), (UNPACK, add))

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
        """The kernel that copies all values for other ranks from the blocks' q into the messages."""
        place = {i: k for k, i in enumerate(self._blocks)}
        members = [pair for by_rank in pairs.values() for pair in sorted(by_rank, key=lambda p: p[:2])]
        vector = np.repeat([place[p.own] for p in members], [p.nodes.size for p in members])
        node = np.concatenate([p.nodes for p in members])
        vectors = [block.q for block in self._blocks.values()]
        return kernels.Gather(vectors, vector.astype(np.int32), node, self._out)

    def _sum(self, pairs: dict[int, list[_SharedPair]]) -> Any:
        """The kernel that sums the interface values of the blocks and those received, by node and in the
        order of blocks.

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


def _pairs(blocks: Mapping[int, Block], owner: NDArray[np.int64], rank: int) -> dict[int, list[_SharedPair]]:
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
