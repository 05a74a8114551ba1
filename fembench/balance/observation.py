"""Input and output of a policy: plain arrays, no MPI, no clock.

Symbols (Gomes 2014): blocks i < V are its processes, ranks j < P its processors, an
iteration its superstep.
    T(i)      time[i]    seconds of block i per iteration on its current rank
    Speed(j)  speed[j]   work per second, in any unit of work. A measured speed includes background load, so
                         the occupancy L of (4.10), (4.11) is 1 at the source and 0 at the target
    Inst(i)   inst[i]    work of block i = T(i) Speed(owner of i)                              (4.10)
    t_j       load       sum of T(i) over the blocks of rank j, and the cost of its messages    (4.3)
    SizeOf(i) size[i]    bytes that migrate with block i
    K(i,j)    seconds per byte between two ranks

Seconds that ranks spend on messages, from the cost of one between each pair.

Tables are [to, from]: row p contains what rank p receives. A rank receives a message
per iteration from each neighbour. As in Gomes (2014), only receptions count.
"""

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fembench.base.arrays import F64, I64, Mask
from fembench.records.case_fields import Origin


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


@dataclass(frozen=True, eq=False)
class Stats:
    """The state of the job at a look."""

    owner: I64  # (V,) rank of each block
    time: F64  # (V,) s per iteration
    speed: F64  # (P,)
    size: F64  # (V,) bytes
    links: Links = field(default_factory=Links.none)
    pairs: PairCosts | None = None  # None: K is the same for all pairs
    shown: float = 1.0  # part of the messages' cost that computing does not hide
    second_per_byte: float = 8.5e-9  # K without pairs: Charm++'s constant, as in Gomes (2014)
    per_move: float = 0.0  # s per move, independent of its size (Mig of 2.17)
    look_cost: float = 0.0  # s of a look
    communication: float = 0.0  # s per iteration that no move changes
    remaining: int = 1  # expected number of iterations still to come
    places: F64 | None = None  # (V, 3) centres of the blocks
    leaving: frozenset[int] = frozenset()  # ranks that must be empty
    resting: frozenset[int] = frozenset()  # blocks that moved recently and must stay
    seen: F64 | None = None  # (P,) s as measured, if `time` is smoothed
    noise: float = 0.0  # relative, of the measurements
    seed: int = 0

    @property
    def n_blocks(self) -> int:
        return self.owner.size

    @property
    def n_ranks(self) -> int:
        return self.speed.size

    @cached_property
    def inst(self) -> F64:
        """(V,) work of each block."""
        return self.time * self.speed[self.owner]

    @cached_property
    def rank_time(self) -> F64:
        """(P,) s of computing per rank."""
        return np.bincount(self.owner, self.time, self.n_ranks).astype(np.float64)

    @cached_property
    def load(self) -> F64:
        """(P,) s of computing and messages per rank."""
        return self.load_if(self.owner)

    def per_byte(self, to: NDArray | int, source: NDArray | int) -> F64:
        """K between ranks."""
        return np.asarray(self.second_per_byte if self.pairs is None else self.pairs.per_byte[to, source])

    def cost(self, block: NDArray | int, target: NDArray | int) -> F64:
        """s to move a block to a rank (Mem of 4.9, with the constant part of 2.17)."""
        return self.size[block] * self.per_byte(target, self.owner[block]) + self.per_move

    def cost_of(self, moves: list[tuple[int, int]]) -> float:
        """s of these moves."""
        return float(sum(self.cost(block, target) for block, target in moves))

    @cached_property
    def open(self) -> Mask:
        """(P,) mask of the ranks that may receive blocks."""
        mask = np.ones(self.n_ranks, bool)
        mask[list(self.leaving)] = False
        return mask

    def times_if(self, owner: I64) -> F64:
        """(P,) s of computing per rank with these owners."""
        return np.bincount(owner, self.inst / self.speed[owner], self.n_ranks).astype(np.float64)

    def messages_if(self, owner: I64) -> F64:
        """(P,) s of messages per rank with these owners; 0 without pairs."""
        if self.pairs is None:
            return np.zeros(self.n_ranks)
        return self.shown * self.pairs.seconds(self.links.received(owner, self.n_ranks)).sum(axis=1)

    def load_if(self, owner: I64) -> F64:
        """(P,) s of computing and messages per rank with these owners."""
        return self.times_if(owner) + self.messages_if(owner)

    def if_moved(self, owner: I64, blocks: I64) -> tuple[F64, F64]:
        """(n, P) s of the rank that one of n blocks goes to, and of its old one."""
        t = self.times_if(owner)
        there = t + self.inst[blocks, None] / self.speed
        here = t[owner[blocks]] - self.inst[blocks] / self.speed[owner[blocks]]
        here = np.repeat(here[:, None], self.n_ranks, axis=1)
        if self.pairs is None or not blocks.size:
            return there, here
        messages = self.shown * np.array([self.pairs.if_moved(self.links, owner, int(i)) for i in blocks])
        return there + messages[:, 0], here + messages[:, 1]

    @property
    def silent(self) -> "Stats":
        """The same state as policies see it that ignore messages."""
        return dataclasses.replace(self, pairs=None)

    def moved(self, owner: I64) -> "Stats":
        """The same state with other owners."""
        return dataclasses.replace(self, owner=owner, time=self.inst / self.speed[owner])


@dataclass(frozen=True)
class Tuning:
    """Parameters of detection and choice, with the names of Gomes (2014) in brackets."""

    band: float = 0.1  # tolerated deviation of a rank from the mean [D]
    origin: Origin = "strict"  # blocks leave ranks above mean (1 + band); "mean": above the mean
    net: bool = False  # Comm less bytes that become remote; Gomes (2014): only those that become local
    hysteresis: float = 0.05  # fraction of the iteration that a proposal must save
    shown: int = 10  # candidates stored in a ledger


def proposal(stats: Stats, owner: I64) -> list[tuple[int, int]]:
    """[(block, rank)] the moves from the current owners to these, in the order of blocks."""
    changed = np.flatnonzero(owner != stats.owner)
    return [(int(i), int(owner[i])) for i in changed]


def applied(owner: I64, moves: list[tuple[int, int]]) -> I64:
    """Owners after the moves."""
    result = owner.copy()
    for block, rank in moves:
        result[block] = rank
    return result
