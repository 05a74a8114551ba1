"""Policies for comparison: those of run-time systems (Gomes 2014, 6), repartitioning.

greedy, greedy-comm, random, rcb and metis-shares compute a new assignment; refine and
refine-comm change it step by step. Only the -comm ones see the cost of messages.
"""

import numpy as np

from fembench.balance.choose import Moves, by_finish
from fembench.balance.observation import Stats, Tuning, proposal
from fembench.base.arrays import F64, I64


def greedy(stats: Stats, tuning: Tuning) -> Moves:
    """Each block, the largest first, goes to the rank that finishes it first (GreedyLB)."""
    return greedy_comm(stats.silent, tuning)


def greedy_comm(stats: Stats, tuning: Tuning) -> Moves:
    """The same with the cost of messages between blocks on different ranks (GreedyCommLB)."""
    return proposal(stats, by_finish(stats))


def random(stats: Stats, tuning: Tuning) -> Moves:
    """Each block goes to a random rank (RandCentLB); reproducible for a given seed."""
    ranks = np.flatnonzero(stats.open)
    return proposal(stats, np.random.default_rng(stats.seed).choice(ranks, stats.n_blocks))


def refine(stats: Stats, tuning: Tuning) -> Moves:
    """Ranks above the band give blocks to the rank that then finishes first (RefineLB).

    The largest first, while the receiver remains faster. Each block moves at most once.
    """
    return refine_comm(stats.silent, tuning)


def refine_comm(stats: Stats, tuning: Tuning) -> Moves:
    """The same with the cost of messages in the times of all ranks (RefineCommLB)."""
    owner, load, moves = stats.owner.copy(), stats.load, []
    limit = float(load[stats.open].mean()) * (1 + tuning.band)
    done: set[int] = set()
    for source in np.argsort(-load, kind="stable"):
        mine = np.flatnonzero(owner == source)
        for i in mine[np.argsort(-stats.inst[mine], kind="stable")]:
            if load[source] <= limit:
                break
            there = np.where(stats.open, stats.if_moved(owner, np.array([i]))[0][0], np.inf)
            there[source] = np.inf
            j = int(np.argmin(there))
            if i in done or there[j] >= load[source]:
                continue
            owner[i] = j
            load = stats.load_if(owner)
            done.add(int(i))
            moves.append((int(i), j))
    return moves


def rcb(stats: Stats, tuning: Tuning) -> Moves:
    """Recursive bisection of the blocks' centres, weighted by work, for the ranks' speeds."""
    places = np.zeros((stats.n_blocks, 3)) if stats.places is None else stats.places
    owner = np.empty(stats.n_blocks, np.int64)
    stack = [(np.arange(stats.n_blocks), np.flatnonzero(stats.open))]
    while stack:
        blocks, ranks = stack.pop()
        if ranks.size == 1 or blocks.size == 0:
            owner[blocks] = ranks[0]
            continue
        first = ranks[: ranks.size // 2]
        second = ranks[ranks.size // 2 :]
        lower = _lower(places[blocks], stats.inst[blocks], _share(stats.speed, first, second))
        stack += [(blocks[lower], first), (blocks[~lower], second)]
    return proposal(stats, owner)


def _share(speed: F64, first: I64, second: I64) -> float:
    return float(speed[first].sum() / (speed[first].sum() + speed[second].sum()))


def _lower(places: F64, work: F64, share: float) -> np.ndarray:
    """(n,) mask of the low side of the longest axis whose work is closest to the share."""
    axis = int(np.argmax(np.ptp(places, axis=0)))
    order = np.argsort(places[:, axis], kind="stable")
    cumulated = np.concatenate(([0.0], np.cumsum(work[order])))
    cut = int(np.argmin(np.abs(cumulated - share * cumulated[-1])))
    lower = np.zeros(work.size, bool)
    lower[order[:cut]] = True
    return lower


def metis_shares(stats: Stats, tuning: Tuning) -> Moves:
    """The blocks repartitioned by METIS for the measured speeds, such that few bytes move."""
    from fembench.mesh.facets import DualGraph
    from fembench.partition.methods import cut_graph

    ranks = np.flatnonzero(stats.open)
    if ranks.size == 1 or not stats.links.to.size:
        return greedy(stats, tuning)
    starts, neighbours = stats.links.graph(stats.n_blocks)
    graph = DualGraph(starts, neighbours)
    shares = stats.speed[ranks] / stats.speed[ranks].sum()
    part = cut_graph(graph, shares.tolist(), stats.seed % 1000, True)
    return proposal(stats, ranks[_names(stats, part, ranks)[part]])


def _names(stats: Stats, part: np.ndarray, ranks: I64) -> I64:
    """(P,) rank of each part: most bytes stay, and no rank finishes later."""
    from scipy.optimize import linear_sum_assignment

    n = ranks.size
    stay = np.zeros((n, n))
    work = np.bincount(part, stats.inst, n)
    index = {int(rank): k for k, rank in enumerate(ranks)}
    for i, p in enumerate(part):
        k = index.get(int(stats.owner[i]))
        if k is not None:
            stay[p, k] += stats.size[i]
    time = work[:, None] / stats.speed[ranks]
    worst = float(time.diagonal().max()) * (1 + 1e-9)
    value = np.where(time <= worst, stay, stay - stats.size.sum() * n)
    return linear_sum_assignment(value, maximize=True)[1].astype(np.int64)
