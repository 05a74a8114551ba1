"""Potential of migration: the seconds that a move saves in the next iteration (Gomes 2014, 4.5 to 4.11)."""

import numpy as np

from fembench.balance.observation import F64, Stats, Tuning, applied
from fembench.records.ledger import Candidate


def received(stats: Stats) -> F64:
    """(V, P) bytes that each block receives from the blocks of each rank per iteration (4.8)."""
    table, links = np.zeros((stats.n_blocks, stats.n_ranks)), stats.links
    np.add.at(table, (links.to, stats.owner[links.source]), links.bytes)
    return table


def candidates(stats: Stats, tuning: Tuning, most: int | None = None) -> list[Candidate]:
    """Up to `most` moves with a positive potential, the highest first; equal ones by block, then rank.

    Moves are from ranks above the band (or the mean: `tuning.origin`) to ranks not above the mean.
    """
    return ranking(stats, tuning, most)[1]


def ranking(stats: Stats, tuning: Tuning, most: int | None = None) -> tuple[int, list[Candidate]]:
    """(number of candidates, the best of them)."""
    t, mean = stats.rank_time, float(stats.rank_time[stats.open].mean())
    over = t > mean * (1 + tuning.band) if tuning.origin == "strict" else t >= mean
    blocks = np.setdiff1d(np.flatnonzero(over[stats.owner]), list(stats.resting))
    targets = np.flatnonzero((t <= mean) & stats.open)
    if not blocks.size or not targets.size:
        return 0, []
    comp = t[stats.owner[blocks], None] - (
        stats.inst[blocks, None] / stats.speed[targets] + t[targets]
    )  # (4.11)
    table = received(stats)[blocks]
    gross = table[:, targets]
    if tuning.net:
        gross = gross - table[np.arange(blocks.size), stats.owner[blocks], None]
    home = stats.owner[blocks, None]
    comm = gross * stats.shown * stats.per_byte(home, targets)  # (4.7)
    mem = stats.cost(blocks[:, None], targets) + np.zeros_like(comp)
    potential = comp + comm - mem
    potential[stats.owner[blocks, None] == targets] = 0.0
    rows, columns = np.nonzero(potential > 0)  # (4.6)
    order = np.lexsort((columns, rows, -potential[rows, columns]))[:most]
    best = [
        Candidate(
            block=int(blocks[r]),
            source=int(stats.owner[blocks[r]]),
            target=int(targets[c]),
            comp=float(comp[r, c]),
            comm=float(comm[r, c]),
            mem=float(mem[r, c]),
        )
        for r, c in zip(rows[order], columns[order])
    ]
    return rows.size, best


def forecast(stats: Stats, moves: list[tuple[int, int]]) -> float:
    """Seconds of the next iteration after these moves, without their cost: the longest sum of computing and
    messages on a rank."""
    return float(stats.load_if(applied(stats.owner, moves)).max()) + stats.communication
