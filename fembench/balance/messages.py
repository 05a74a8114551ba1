"""Seconds that ranks spend on messages, from the cost of one between each pair.

Tables are [to, from]: row p contains what rank p receives. A rank receives a message
per iteration from each neighbour. As in Gomes (2014), only receptions count.
"""

from dataclasses import dataclass

import numpy as np

from fembench.base.arrays import F64, I64


@dataclass(frozen=True, eq=False)
class Links:
    """Messages per iteration: block `to[k]` receives `bytes[k]` from block `source[k]`."""

    to: I64  # (n,)
    source: I64  # (n,)
    bytes: F64  # (n,)

    @classmethod
    def none(cls) -> "Links":
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))

    def received(self, owner: I64, n_ranks: int) -> F64:
        """(P, P) bytes per iteration between ranks with these owners of the blocks."""
        pair = owner[self.to] * n_ranks + owner[self.source]
        table = np.bincount(pair, self.bytes, n_ranks * n_ranks).astype(np.float64).reshape(n_ranks, n_ranks)
        np.fill_diagonal(table, 0.0)
        return table

    def graph(self, n_blocks: int) -> tuple[I64, I64]:
        """(V + 1,) starts and the neighbours of every block, ascending.

        Blocks are neighbours whichever of them sends: METIS overwrites memory if an edge lacks its
        opposite, as in a ring.
        """
        a, b = self.to, self.source
        edges = np.unique(np.concatenate((a * n_blocks + b, b * n_blocks + a)))
        return np.searchsorted(edges, np.arange(n_blocks + 1) * n_blocks), edges % n_blocks

    def of_block(self, block: int, owner: I64, n_ranks: int) -> tuple[F64, F64]:
        """(P,) bytes that a block receives from each rank's blocks, (P,) those it sends."""
        into, out = self.to == block, self.source == block
        return (
            np.bincount(owner[self.source[into]], self.bytes[into], n_ranks).astype(np.float64),
            np.bincount(owner[self.to[out]], self.bytes[out], n_ranks).astype(np.float64),
        )


@dataclass(frozen=True, eq=False)
class PairCosts:
    """The cost of a message between every two ranks."""

    per_message: F64  # (P, P) s
    per_byte: F64  # (P, P) s

    def seconds(self, n_bytes: F64, to: int | slice = slice(None)) -> F64:
        """Seconds of messages of these bytes, (P, P), or (P,) to one rank; 0 without one."""
        return np.where(n_bytes > 0, self.per_message[to] + n_bytes * self.per_byte[to], 0.0)

    def if_moved(self, links: Links, owner: I64, block: int) -> tuple[F64, F64]:
        """[target] seconds of messages of target (P,) and of source (P,) after a move.

        The entries of the block's own rank are meaningless.
        """
        n, source = self.per_byte.shape[0], int(owner[block])
        into, out = links.of_block(block, owner, n)
        table = links.received(owner, n)
        left = table[source] - into
        left[source] = 0.0
        now = self.seconds(left, source)
        of_source = now.sum() - now + self.seconds(left + out[source], source)
        table += into
        table[:, source] -= out
        np.fill_diagonal(table, 0.0)
        return self.seconds(table).sum(axis=1), of_source
