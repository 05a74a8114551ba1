"""The neighbour sum between blocks: through memory on one rank, by one message a pair of ranks otherwise.

A block packs what it shares into buffers; a neighbour block on the same rank reads them where they lie, one
on another rank gets them in the one message that the two ranks exchange. Every block adds what it gets in
ascending order of block, its own at its place: the result does not depend on which rank has which block.

The message from rank p to rank q holds the pairs (block of p, block of q) in ascending order; both ranks know
it without asking, from the owners of all blocks.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from fembench.balance.block import Block
from fembench.dist.comm import DOUBLE, Comm, Request
from fembench.kernels.backend import kernels
from fembench.timing.phases import SEND, UNPACK, WAIT
from fembench.timing.tracer import TracerLike

F64 = NDArray[np.float64]
Call = Callable[[], None]
_TAG = 8


class Exchange:
    """The plan of one rank for one distribution of the blocks; sums the blocks' q.

    `start()` packs and starts the messages, `finish()` waits and adds. Collective over neighbours.
    """

    def __init__(
        self, comm: Comm, blocks: Mapping[int, Block], owner: NDArray[np.int64], tracer: TracerLike
    ) -> None:
        self._comm, self._owner = comm, owner
        self._out, self._in = self._layout(blocks)
        packs = [pack for block in blocks.values() for pack in self._packs(block)]
        adds = [self._add(blocks, block) for block in blocks.values()]
        self._requests = self._persistent()
        self.start, self.finish = _bound(self._requests, packs, adds, tracer)

    @property
    def message_bytes(self) -> int:
        """Bytes that this rank sends in one update."""
        mine = self._comm.rank
        return sum(buffer.nbytes for rank, (buffer, _) in self._out.items() if rank != mine)

    @property
    def n_messages(self) -> int:
        """Messages that this rank sends in one update."""
        return sum(rank != self._comm.rank for rank in self._out)

    def update(self) -> None:
        """Sum q of all blocks over their sharers."""
        self.start()
        self.finish()

    def close(self) -> None:
        """Free the persistent requests."""
        for request in self._requests:
            request.Free()
        self._requests = []

    def _layout(self, blocks: Mapping[int, Block]) -> tuple[dict, dict]:
        """{rank: (buffer, {(own block, other block): its slice})} to send and to receive.

        A rank's entry for itself is what its blocks exchange in memory.
        """
        sizes: dict[int, dict[tuple[int, int], int]] = {}
        for a, block in blocks.items():
            for b, nodes in zip(block.neighbours, block.nodes):
                sizes.setdefault(int(self._owner[b]), {})[a, b] = 3 * nodes.size
        out, into = {}, {}
        for rank in sorted(sizes):
            pairs = sizes[rank]
            out[rank] = _slices(sorted(pairs), pairs)
            if rank != self._comm.rank:
                into[rank] = _slices(sorted(pairs, key=lambda pair: (pair[1], pair[0])), pairs)
        return out, into

    def _packs(self, block: Block) -> list[Call]:
        """One call a rank that this block has neighbours on: its pairs lie one after another."""
        by_rank: dict[int, list[tuple[int, NDArray]]] = {}
        for b, nodes in zip(block.neighbours, block.nodes):
            by_rank.setdefault(int(self._owner[b]), []).append((b, nodes))
        calls = []
        for rank, members in by_rank.items():
            buffer, slices = self._out[rank]
            first, last = slices[block.id, members[0][0]], slices[block.id, members[-1][0]]
            index = np.concatenate([nodes for _, nodes in members])
            calls.append(kernels.Pack(block.q, index, buffer[first.start : last.stop]).run)
        return calls

    def _add(self, blocks: Mapping[int, Block], block: Block) -> Call:
        below = sum(b < block.id for b in block.neighbours)
        buffers = [self._from(blocks, block.id, b) for b in block.neighbours]
        return kernels.NeighbourSum(block.q, block.first_dof, below, block.nodes, buffers).run

    def _from(self, blocks: Mapping[int, Block], a: int, b: int) -> F64:
        """Where the contribution of block b to own block a lies."""
        if b in blocks:
            buffer, slices = self._out[self._comm.rank]
            return buffer[slices[b, a]]
        buffer, slices = self._in[int(self._owner[b])]
        return buffer[slices[a, b]]

    def _persistent(self) -> list[Request]:
        comm = self._comm
        receive = [comm.Recv_init([buffer, DOUBLE], rank, _TAG) for rank, (buffer, _) in self._in.items()]
        send = [
            comm.Send_init([buffer, DOUBLE], rank, _TAG)
            for rank, (buffer, _) in self._out.items()
            if rank != comm.rank
        ]
        return receive + send


def _slices(order: list[tuple[int, int]], sizes: dict[tuple[int, int], int]) -> tuple[F64, dict]:
    """A buffer for all pairs in this order, and where each lies."""
    ends = np.cumsum([0, *(sizes[pair] for pair in order)])
    slices = {pair: slice(int(i), int(j)) for pair, i, j in zip(order, ends[:-1], ends[1:])}
    return np.empty(int(ends[-1])), slices


def _bound(
    requests: list[Request], packs: list[Call], adds: list[Call], tracer: TracerLike
) -> tuple[Call, Call]:
    begin, end = tracer.begin, tracer.end
    start_all, wait_all = Request.Startall, Request.Waitall

    def start() -> None:
        begin(SEND)
        for pack in packs:
            pack()
        if requests:
            start_all(requests)
        end(SEND)

    def finish() -> None:
        begin(WAIT)
        if requests:
            wait_all(requests)
        end(WAIT)
        begin(UNPACK)
        for add in adds:
            add()
        end(UNPACK)

    return start, finish
