"""When to act: whether the job is balanced, and how long to wait until the next look.

alpha counts calls of the balancer between two looks, gamma the
iterations between two calls.
"""

import numpy as np

from fembench.balance.observation import Stats
from fembench.base.arrays import F64, I64
from fembench.methods.policies import IntervalRule


def within(times: F64, band: float) -> bool:
    """Whether max < mean (1 + band) and min > mean (1 - band) (Gomes 2014, 4.1, 4.2)."""
    mean = float(times.mean())
    return bool(times.max() < mean * (1 + band) and times.min() > mean * (1 - band))


def balanced_ranks(stats: Stats, band: float) -> bool:
    """MigBSP++: whether the times of open ranks, with messages, are in the band (4.3)."""
    return within(stats.load[stats.open], band)


def balanced_blocks(stats: Stats, band: float) -> bool:
    """MigBSP: whether the times of the blocks are in the band, whichever ranks own them."""
    return within(stats.time, band)


def reachable(stats: Stats, greedy: I64, band: float) -> bool:
    """Whether the greedy assignment, that of `by_finish`, is in the band.

    Exact for equal blocks. Of unequal blocks, another assignment may be in the band.
    """
    return within(stats.load_if(greedy)[stats.open], band)


def by_finish(stats: Stats) -> I64:
    """(V,) owners: the largest block first, each to the open rank that finishes it first.

    Messages count from blocks that already have a rank.
    """
    n = stats.n_ranks
    owner = np.full(stats.n_blocks, n)  # n: none yet
    load, received = np.where(stats.open, 0.0, np.inf), np.zeros((n, n))
    for i in np.argsort(-stats.inst, kind="stable"):
        there = load + stats.inst[i] / stats.speed
        if stats.pairs is not None:
            into, out = (b[:n] for b in stats.links.of_block(i, owner, n + 1))
            table = received + into
            np.fill_diagonal(table, 0.0)
            there = there + stats.shown * stats.pairs.seconds(table).sum(axis=1)
        j = int(np.argmin(there))
        owner[i] = j
        load[j] += stats.inst[i] / stats.speed[j]
        if stats.pairs is not None:
            received[j] += into
            received[:, j] += out
            received[j, j] = 0.0
    return owner


def next_alpha(alpha: int, balanced: bool, rule: IntervalRule = "double", least: int = 1) -> int:
    """The next alpha if the ranks are balanced or not.

    double: twice as large, or 1 (Gomes 2014, algorithm 5, MigBSP++). halve: twice or
    half as large (MigBSPLB-A, table 7). step: one more, or one less but at least
    `least` (algorithm 2, MigBSP).
    """
    if rule == "step":
        return alpha + 1 if balanced else max(least, alpha - 1)
    if balanced:
        return 2 * alpha
    return max(1, alpha // 2) if rule == "halve" else 1


def wider(band: float) -> float:
    """The band after a number of looks without a move (Gomes 2014, algorithm 1)."""
    return 1.5 * band if 1.5 * band <= 1 else band
