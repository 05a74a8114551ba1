"""Input and output of a policy: plain arrays, no MPI, no clock.

Symbols (Gomes 2014): blocks i < V are its processes, ranks j < P its processors, an iteration its superstep.
    T(i)      time[i]    seconds of block i per iteration on its current rank
    Speed(j)  speed[j]   work per second, in any unit of work. A measured speed includes background load, so
                         the occupancy L of (4.10), (4.11) is 1 at the source and 0 at the target
    Inst(i)   inst[i]    work of block i = T(i) Speed(owner of i)                              (4.10)
    t_j       rank_time  sum of T(i) over the blocks of rank j                                  (4.3)
    SizeOf(i) size[i]    bytes that migrate with block i
    K         seconds per byte between ranks
"""

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Links:
    """Messages between blocks per iteration: block `to[k]` receives `bytes[k]` from block `source[k]`."""

    to: I64  # (n,)
    source: I64  # (n,)
    bytes: F64  # (n,)

    @classmethod
    def none(cls) -> "Links":
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


@dataclass(frozen=True, eq=False)
class Stats:
    """The state of the job at a look."""

    owner: I64  # (V,) rank of each block
    time: F64  # (V,) s per iteration
    speed: F64  # (P,)
    size: F64  # (V,) bytes
    links: Links = field(default_factory=Links.none)
    second_per_byte: float = 8.5e-9  # Charm++'s constant, as in Gomes (2014)
    per_move: float = 0.0  # s per move, independent of its size (Mig of 2.17)
    communication: float = 0.0  # max(cc) of (4.12): s per iteration that no move changes
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
    def cost(self) -> F64:
        """(V,) s to move each block (Mem of 4.9, with the constant part of 2.17)."""
        return self.size * self.second_per_byte + self.per_move

    @cached_property
    def open(self) -> NDArray[np.bool_]:
        """(P,) mask of the ranks that may receive blocks."""
        mask = np.ones(self.n_ranks, bool)
        mask[list(self.leaving)] = False
        return mask

    def times_if(self, owner: I64) -> F64:
        """(P,) s of computing per rank with these owners."""
        return np.bincount(owner, self.inst / self.speed[owner], self.n_ranks).astype(np.float64)

    def moved(self, owner: I64) -> "Stats":
        """The same state with other owners."""
        return dataclasses.replace(self, owner=owner, time=self.inst / self.speed[owner])


@dataclass(frozen=True)
class Tuning:
    """Parameters of detection and choice, with the names of Gomes (2014) in brackets."""

    band: float = 0.1  # tolerated deviation of a rank from the mean [D]
    origin: str = "strict"  # blocks leave ranks above mean (1 + band); "mean": above the mean
    net: bool = False  # Comm minus bytes that become remote; Gomes (2014) counts only those that become local
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
