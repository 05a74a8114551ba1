"""When to act, and which blocks go where.

When: whether the job is balanced, and how long to wait until the next look. alpha counts
calls of the balancer between two looks, gamma the iterations between two calls.

Where: MigBSP, APBSP (Gomes 2014), and the amortised descent. APBSP as published, or with
a full scan. Potential of migration: the seconds that a move saves in the next iteration
(Gomes 2014, 4.5 to 4.11).
"""

import numpy as np

from fembench.balance.observation import Stats, Tuning, applied, proposal
from fembench.base.arrays import F64, I64, Mask
from fembench.methods.policies import IntervalRule
from fembench.records.ledger import Candidate


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
    load = np.where(stats.open, 0.0, np.inf)
    received = np.zeros((n, n))
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


def received(stats: Stats) -> F64:
    """(V, P) bytes that each block receives from each rank's blocks per iteration (4.8)."""
    table = np.zeros((stats.n_blocks, stats.n_ranks))
    links = stats.links
    np.add.at(table, (links.to, stats.owner[links.source]), links.bytes)
    return table


def candidates(stats: Stats, tuning: Tuning, most: int | None = None) -> list[Candidate]:
    """Up to `most` moves of positive potential, the highest first, then by block and rank.

    Moves are from ranks above the band (`tuning.origin`: the mean) to ranks not above it.
    """
    return ranking(stats, tuning, most)[1]


def ranking(stats: Stats, tuning: Tuning, most: int | None = None) -> tuple[int, list[Candidate]]:
    """(number of candidates, the best of them)."""
    t = stats.rank_time
    mean = float(stats.rank_time[stats.open].mean())
    over = t > mean * (1 + tuning.band) if tuning.origin == "strict" else t >= mean
    blocks = np.setdiff1d(np.flatnonzero(over[stats.owner]), list(stats.resting))
    targets = np.flatnonzero((t <= mean) & stats.open)
    if not blocks.size or not targets.size:
        return 0, []
    there = stats.inst[blocks, None] / stats.speed[targets] + t[targets]
    comp = t[stats.owner[blocks], None] - there  # (4.11)
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
    """Seconds of the next iteration after these moves, without their cost.

    That is the longest sum of computing and messages on a rank.
    """
    return float(stats.load_if(applied(stats.owner, moves)).max()) + stats.communication


Moves = list[tuple[int, int]]  # (block, target rank), in the order of the decisions


def best_potential(stats: Stats, tuning: Tuning) -> Moves:
    """MigBSP: the single move with the highest potential."""
    return [(c.block, c.target) for c in candidates(stats, tuning, 1)]


def stay(stats: Stats, tuning: Tuning) -> Moves:
    """No move."""
    return []


def apbsp_scan(stats: Stats, tuning: Tuning) -> Moves:
    """APBSP with every candidate tried."""
    return apbsp(stats, tuning, scan=True)


def apbsp(stats: Stats, tuning: Tuning, *, scan: bool = False) -> Moves:
    """The BSP prediction (Gomes 2014, algorithm 6): move while iterations get no longer.

    The cost of a move is charged to that one iteration. The published
    algorithm stops at the first move that it refuses; with `scan`, it
    continues with the next candidate.
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
    """The cheaper of two proposals: a descent from the present owners, and a new assignment.

    No moves if neither gains more than the hysteresis. A move costs once, and its gain
    counts in every remaining iteration.
    """
    now = remaining_seconds(stats, [])
    best = min((_descent(stats), _new(stats)), key=lambda moves: remaining_seconds(stats, moves))
    return best if remaining_seconds(stats, best) < now * (1 - tuning.hysteresis - 1e-12) else []


def remaining_seconds(stats: Stats, moves: Moves) -> float:
    """s of all remaining iterations after these moves, and of the moves."""
    return float(stats.load_if(applied(stats.owner, moves)).max()) * stats.remaining + stats.cost_of(moves)


def _new(stats: Stats) -> Moves:
    """An assignment that ignores the present one, but for resting blocks."""
    return [(i, j) for i, j in proposal(stats, by_finish(stats)) if i not in stats.resting]


def _descent(stats: Stats) -> Moves:
    """The best prefix of a descent.

    Each step moves a block from the rank that finishes last, messages included, to
    another rank, such that the later of the two finishes as early as possible. A step
    may leave the iteration time unchanged (if two ranks are equally late). The prefix
    with the least remaining time, including costs, is chosen.
    """
    owner = stats.owner.copy()
    fixed = np.zeros(stats.n_blocks, bool)
    fixed[list(stats.resting)] = True
    best = remaining_seconds(stats, [])
    chosen = 0
    spent = 0.0
    moves: Moves = []
    while (step := _relief(stats, owner, fixed)) is not None:
        i, j = step
        owner[i], fixed[i] = j, True
        moves.append((i, j))
        spent += float(stats.cost(i, j))
        value = float(stats.load_if(owner).max()) * stats.remaining + spent
        if value < best * (1 - 1e-12):
            best, chosen = value, len(moves)
    return moves[:chosen]


def _relief(stats: Stats, owner: I64, fixed: Mask) -> tuple[int, int] | None:
    """The move from the last rank after which the later of the two finishes earliest.

    None if none helps.
    """
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
    """Moves the blocks of leaving ranks, largest first, to the rank that finishes first."""
    t, moves = stats.rank_time.copy(), []
    stranded = np.flatnonzero(~stats.open[stats.owner])
    for i in stranded[np.argsort(-stats.inst[stranded], kind="stable")]:
        there = np.where(stats.open, t + stats.inst[i] / stats.speed, np.inf)
        j = int(np.argmin(there))
        t[j] = there[j]
        moves.append((int(i), j))
    return moves
