"""Policies by name: pure functions of statistics that propose moves.

none observe              nothing moves; observe does all the rest
migbsp                    one move, detection by the times of blocks            Gomes (2014), version A
migbsp++ migbsp++-scan    APBSP, literal or with all candidates tried           Gomes (2014), version B
amortised                 cost of moves against gain over what remains          the default
greedy refine random rcb metis-shares diffusion                                 to compare with
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from fembench.balance.choose import Moves, amortised, apbsp, best_potential, evacuate
from fembench.balance.detect import balanced_blocks, balanced_ranks
from fembench.balance.natives import diffusion, greedy, metis_shares, random, rcb, refine
from fembench.balance.observation import Stats, Tuning, applied
from fembench.balance.potential import forecast


@dataclass(frozen=True)
class Policy:
    """How a policy chooses, and how it is driven."""

    choose: Callable[[Stats, Tuning], Moves]
    by_block: bool = False  # detection by the times of blocks, alpha halved (version A)
    wholesale: bool = False  # a new assignment, taken as a whole where it wins more than the hysteresis
    blind: bool = False  # moves whatever the forecast says
    looks: bool = True
    literal: bool = False  # as published: alpha has no limit, and falls to 1 if nothing can be done


def stay(stats: Stats, tuning: Tuning) -> Moves:
    """No move."""
    return []


POLICIES = {
    "none": Policy(stay, looks=False),
    "observe": Policy(stay),
    "migbsp": Policy(best_potential, by_block=True, literal=True),
    "migbsp++": Policy(apbsp, literal=True),
    "migbsp++-scan": Policy(partial(apbsp, scan=True), literal=True),
    "amortised": Policy(amortised),
    "greedy": Policy(greedy, wholesale=True),
    "refine": Policy(refine),
    "random": Policy(random, wholesale=True, blind=True),
    "rcb": Policy(rcb, wholesale=True),
    "metis-shares": Policy(metis_shares, wholesale=True),
    "diffusion": Policy(diffusion),
}


def balanced(policy: Policy, stats: Stats, band: float) -> bool:
    """By the rule of the policy; never while a rank that leaves has blocks."""
    if not stats.open[stats.owner].all():
        return False
    return (balanced_blocks if policy.by_block else balanced_ranks)(stats, band)


def decide(policy: Policy, stats: Stats, tuning: Tuning, resting: frozenset[int] = frozenset()) -> Moves:
    """The moves to make, leaving ranks emptied first. Blocks that rest (they moved lately) stay,
    unless their rank leaves."""
    away = evacuate(stats)
    after = replace(stats.moved(applied(stats.owner, away)) if away else stats, resting=resting)
    if away and (policy.wholesale or balanced_ranks(after, tuning.band)):
        return away
    moves = policy.choose(after, tuning)
    if policy.wholesale:
        return moves if moves and (policy.blind or _wins(after, moves, tuning)) else away
    chosen = dict(away)
    chosen.update({i: j for i, j in moves if i not in resting})
    return [(i, j) for i, j in chosen.items() if j != stats.owner[i]]


def _wins(stats: Stats, moves: Moves, tuning: Tuning) -> bool:
    """Whether a new assignment shortens the iteration enough, its cost spread over what remains."""
    now = float(stats.rank_time.max())
    paid = sum(float(stats.cost[i]) for i, _ in moves) / max(stats.remaining, 1)
    return forecast(stats, moves) - stats.communication + paid < now * (1 - tuning.hysteresis)
