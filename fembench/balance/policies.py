"""Policies in use: found by name, what they decide, and the ranks to be emptied."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from msgspec import structs

from fembench.balance.choose import Moves, evacuate, forecast
from fembench.balance.detect import balanced_blocks, balanced_ranks
from fembench.balance.observation import Stats, Tuning, applied
from fembench.base.errors import InputError, shown
from fembench.base.plugins import plugin
from fembench.methods.lookup import load
from fembench.methods.policies import POLICIES, Policy


def parse_drain(text: str, ranks: int) -> dict[int, int]:
    """{rank: iteration} from "2@100,0@300". Raises InputError."""
    result = {}
    for word in filter(None, text.split(",")):
        rank, _, iteration = word.partition("@")
        if not re.fullmatch("[0-9]{1,9}@[0-9]{1,9}", word):
            raise InputError(f"drain '{shown(text)}': expected RANK@ITERATION, as in 2@100")
        if int(rank) in result:
            raise InputError(f"drain '{shown(text)}': rank {rank} is given twice")
        if int(rank) >= ranks:
            raise InputError(f"drain '{shown(text)}': rank {rank}; expected ranks below {ranks}")
        result[int(rank)] = int(iteration)
    if len(result) >= ranks:
        raise InputError(f"drain '{shown(text)}': no rank remains; expected at least one")
    return result


def policy_of(name: str) -> Policy:
    """The policy of that name, of any package, its function loaded. Raises InputError."""
    found: Policy | None = POLICIES.get(name) or plugin("policies", name)
    if found is None:
        raise InputError(f"policy '{name}': expected one of {', '.join(POLICIES)}")
    return structs.replace(found, choose=load(found.choose)) if isinstance(found.choose, str) else found


def balanced(policy: Policy, stats: Stats, band: float) -> bool:
    """Whether the policy calls the job balanced; never while a leaving rank has blocks."""
    if not stats.open[stats.owner].all():
        return False
    return (balanced_blocks if policy.by_block else balanced_ranks)(stats, band)


def decide(policy: Policy, stats: Stats, tuning: Tuning, resting: frozenset[int] = frozenset()) -> Moves:
    """The moves of a policy, as `policy_of` found it; leaving ranks are emptied first.
    Resting blocks (which moved recently) stay, unless their rank leaves."""
    away = evacuate(stats)
    after = replace(stats.moved(applied(stats.owner, away)) if away else stats, resting=resting)
    if away and (policy.wholesale or balanced_ranks(after, tuning.band)):
        return away
    moves = cast(Callable[[Stats, Tuning], Moves], policy.choose)(after, tuning)
    if policy.wholesale:
        return moves if moves and (policy.blind or _wins(after, moves, tuning)) else away
    chosen = dict(away)
    chosen.update({i: j for i, j in moves if i not in resting})
    return [(i, j) for i, j in chosen.items() if j != stats.owner[i]]


def _wins(stats: Stats, moves: Moves, tuning: Tuning) -> bool:
    """Whether a new assignment saves more per iteration than its share of the cost."""
    now = float(stats.load.max())
    paid = stats.cost_of(moves) / max(stats.remaining, 1)
    return forecast(stats, moves) - stats.communication + paid < now * (1 - tuning.hysteresis)
