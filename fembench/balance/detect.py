"""When to act: whether the job is balanced, and how long to wait until the next look.

alpha counts calls of the balancer between two looks, gamma the iterations between two calls.
"""

import numpy as np

from fembench.balance.observation import F64, I64, Stats


def within(times: F64, band: float) -> bool:
    """Whether max < mean (1 + band) and min > mean (1 - band) (Gomes 2014, 4.1, 4.2; 2.8, 2.9)."""
    mean = float(times.mean())
    return bool(times.max() < mean * (1 + band) and times.min() > mean * (1 - band))


def balanced_ranks(stats: Stats, band: float) -> bool:
    """MigBSP++: whether the total computing times of the ranks are in the band, without leaving ranks."""
    return within(stats.rank_time[stats.open], band)


def balanced_blocks(stats: Stats, band: float) -> bool:
    """MigBSP: whether the times of the blocks are in the band, whichever ranks own them."""
    return within(stats.time, band)


def reachable(stats: Stats, band: float) -> bool:
    """Whether the greedy assignment (longest block first, to the rank that finishes first) is in the band.

    Exact for equal blocks. With unequal blocks, another assignment may be in a band that this one misses.
    """
    return within(stats.times_if(by_finish(stats))[stats.open], band)


def by_finish(stats: Stats) -> I64:
    """(V,) owners: each block, the largest first, goes to the open rank that would finish it first."""
    owner = np.empty(stats.n_blocks, np.int64)
    load = np.where(stats.open, 0.0, np.inf)
    for i in np.argsort(-stats.inst, kind="stable"):
        j = int(np.argmin(load + stats.inst[i] / stats.speed))
        owner[i] = j
        load[j] += stats.inst[i] / stats.speed[j]
    return owner


def next_alpha(alpha: int, balanced: bool, *, halve: bool = False) -> int:
    """The next alpha: twice as large if balanced, else 1 (Gomes 2014, algorithm 5) or, with `halve`, half as
    large (MigBSPLB-A, table 7)."""
    if balanced:
        return 2 * alpha
    return max(1, alpha // 2) if halve else 1
