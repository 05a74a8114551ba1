"""Which blocks go where: MigBSP and APBSP (as published, or with a full scan) of Gomes (2014), and the
amortised descent."""

import numpy as np
from numpy.typing import NDArray

from fembench.balance.observation import I64, Stats, Tuning
from fembench.balance.potential import candidates

Moves = list[tuple[int, int]]  # (block, target rank), in the order of the decisions


def best_potential(stats: Stats, tuning: Tuning) -> Moves:
    """MigBSP: the single move with the highest potential."""
    return [(c.block, c.target) for c in candidates(stats, tuning, 1)]


def apbsp(stats: Stats, tuning: Tuning, *, scan: bool = False) -> Moves:
    """The BSP prediction algorithm (Gomes 2014, algorithm 6): move while the next iteration gets no longer.

    The cost of a move is charged to that one iteration. The published algorithm stops at the first move that
    it refuses; with `scan`, it continues with the next candidate.
    """
    owner, spent, moves = stats.owner.copy(), 0.0, []
    current = _predicted(stats, owner)
    gone: set[int] = set()
    for c in candidates(stats, tuning):
        if c.block in gone:
            continue
        owner[c.block] = c.target
        new = _predicted(stats, owner) + spent + c.mem
        if new <= current:
            moves.append((c.block, c.target))
            gone.add(c.block)
            spent, current = spent + c.mem, new
            continue
        owner[c.block] = c.source
        if not scan:
            break
    return moves


def _predicted(stats: Stats, owner: I64) -> float:
    """max(tc) + max(cc) of (4.12)."""
    return float(stats.times_if(owner).max() + stats.messages_if(owner).max()) + stats.communication


def amortised(stats: Stats, tuning: Tuning) -> Moves:
    """The best prefix of a descent: a move costs once, and its gain counts in every remaining iteration.

    Each step moves a block from the rank that finishes last, messages included, to another rank, such that
    the later of the two finishes as early as possible. A step may leave the iteration time unchanged (if two
    ranks are equally late). The prefix with the least remaining time, including costs, is chosen if it gains
    more than the hysteresis.
    """
    owner, load = stats.owner.copy(), stats.load
    fixed = np.zeros(stats.n_blocks, bool)
    fixed[list(stats.resting)] = True
    now = float(load.max()) * stats.remaining
    best, chosen = now * (1 - tuning.hysteresis), 0
    moves: Moves = []
    spent = 0.0
    while (step := _relief(stats, owner, fixed)) is not None:
        i, j = step
        owner[i], fixed[i] = j, True
        moves.append((i, j))
        spent += float(stats.cost(i, j))
        value = float(stats.load_if(owner).max()) * stats.remaining + spent
        if value < best - 1e-12 * now:
            best, chosen = value, len(moves)
    return moves[:chosen]


def _relief(stats: Stats, owner: I64, fixed: NDArray[np.bool_]) -> tuple[int, int] | None:
    """The move from the rank that finishes last after which the later of the two ranks finishes earliest;
    None if none helps."""
    load = stats.load_if(owner)
    source = int(np.argmax(load))
    mine = np.flatnonzero((owner == source) & ~fixed)
    if not mine.size:
        return None
    later = np.maximum(*stats.if_moved(owner, mine))
    later[:, ~stats.open] = np.inf
    later[:, source] = np.inf
    later[later >= load[source]] = np.inf
    k, j = divmod(int(np.argmin(later)), stats.n_ranks)
    return (int(mine[k]), j) if np.isfinite(later[k, j]) else None


def evacuate(stats: Stats) -> Moves:
    """Moves for the blocks of leaving ranks: each, the largest first, goes to the open rank that then
    finishes first."""
    t, moves = stats.rank_time.copy(), []
    stranded = np.flatnonzero(~stats.open[stats.owner])
    for i in stranded[np.argsort(-stats.inst[stranded], kind="stable")]:
        there = np.where(stats.open, t + stats.inst[i] / stats.speed, np.inf)
        j = int(np.argmin(there))
        t[j] = there[j]
        moves.append((int(i), j))
    return moves
