"""Policies by name: pure functions of statistics that propose moves.

none observe              no moves; observe looks and decides nevertheless
migbsp                    one move, detection by the times of blocks            Gomes (2014), version A
migbsp++ migbsp++-scan    APBSP, as published or with all candidates tried      Gomes (2014), version B
amortised                 cost of moves against gain in all remaining iterations
                                                                                the default
greedy greedy-comm refine refine-comm random                                    those of Charm++
rcb metis-shares diffusion                                                      repartitioning
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from fembench.balance.choose import Moves, amortised, apbsp, best_potential, evacuate, forecast
from fembench.balance.detect import balanced_blocks, balanced_ranks
from fembench.balance.natives import (
    diffusion,
    greedy,
    greedy_comm,
    metis_shares,
    random,
    rcb,
    refine,
    refine_comm,
)
from fembench.balance.observation import Stats, Tuning, applied
from fembench.base.errors import InputError
from fembench.base.plugins import plugin
from fembench.records.case_fields import IntervalRule


@dataclass(frozen=True)
class Policy:
    """How a policy chooses moves, and how the balancer uses it."""

    choose: Callable[[Stats, Tuning], Moves]
    by_block: bool = False  # detection by the times of blocks (version A)
    interval: IntervalRule = "double"  # rule for alpha
    wholesale: bool = False  # a new assignment, adopted as a whole if it saves more than the hysteresis
    blind: bool = False  # moves whatever the forecast is
    looks: bool = True
    literal: bool = False  # as published: alpha has no limit, and falls to 1 if no move helps


def stay(stats: Stats, tuning: Tuning) -> Moves:
    """No move."""
    return []


POLICIES = {
    "none": Policy(stay, looks=False),
    "observe": Policy(stay),
    "migbsp": Policy(best_potential, by_block=True, interval="halve", literal=True),
    "migbsp++": Policy(apbsp, literal=True),
    "migbsp++-scan": Policy(partial(apbsp, scan=True), literal=True),
    "amortised": Policy(amortised),
    "greedy": Policy(greedy, wholesale=True),
    "greedy-comm": Policy(greedy_comm, wholesale=True),
    "refine": Policy(refine),
    "refine-comm": Policy(refine_comm),
    "random": Policy(random, wholesale=True, blind=True),
    "rcb": Policy(rcb, wholesale=True),
    "metis-shares": Policy(metis_shares, wholesale=True),
    "diffusion": Policy(diffusion),
}


def policy_of(name: str) -> Policy:
    """The policy of that name, perhaps of another package. Raises InputError."""
    found: Policy | None = POLICIES.get(name) or plugin("policies", name)
    if found is None:
        raise InputError(f"policy '{name}': expected one of {', '.join(POLICIES)}")
    return found


def balanced(policy: Policy, stats: Stats, band: float) -> bool:
    """Whether the job is balanced, by the rule of the policy; never while a leaving rank has blocks."""
    if not stats.open[stats.owner].all():
        return False
    return (balanced_blocks if policy.by_block else balanced_ranks)(stats, band)


def decide(policy: Policy, stats: Stats, tuning: Tuning, resting: frozenset[int] = frozenset()) -> Moves:
    """The moves to make; leaving ranks are emptied first. Resting blocks (which moved recently) stay, unless
    their rank leaves."""
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
    """Whether a new assignment saves enough per iteration, with its cost spread over the remaining ones."""
    now = float(stats.load.max())
    paid = stats.cost_of(moves) / max(stats.remaining, 1)
    return forecast(stats, moves) - stats.communication + paid < now * (1 - tuning.hysteresis)
