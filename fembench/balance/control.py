"""Policies in use, and the state between looks, which are entries of the ledger.

A policy is found by name; it decides, also which ranks are to be emptied. The state is
gamma, alpha, and resting blocks. Without MPI or clock: balancers on ranks and on a virtual
clock use the same object.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil
from typing import cast

from msgspec import structs

from fembench.balance.choose import (
    Moves,
    balanced_blocks,
    balanced_ranks,
    by_finish,
    evacuate,
    forecast,
    next_alpha,
    ranking,
    reachable,
    wider,
)
from fembench.balance.observation import Stats, Tuning, applied, proposal
from fembench.base.arrays import I64
from fembench.base.errors import InputError, shown
from fembench.base.plugins import plugin
from fembench.methods.lookup import load
from fembench.methods.policies import POLICIES, Policy
from fembench.records.case_fields import CaseBalancing, IntervalRule
from fembench.records.ledger import Look, Move


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


MOST_ALPHA = 16  # calls between looks; with more, a change would be detected too late
MOST_LOOKING = 0.01  # fraction of the time that looks may take


@dataclass(frozen=True)
class Settings:
    """The options of a user."""

    policy: str = "amortised"
    alpha: int = 2  # calls before the first look
    gamma: int = 10  # iterations between calls
    interval: IntervalRule = "policy"  # rule for alpha
    widen_after: int = 0  # looks without a move before the band widens (omega); 0: never
    cooldown: int = 2  # looks for which a block stays on its rank after a move
    ageing: float = 0.0  # weight of the newest window; 0: see pace.py
    tuning: Tuning = field(default_factory=Tuning)

    @classmethod
    def of(cls, given: CaseBalancing) -> "Settings":
        """The settings in a case."""
        return cls(
            policy=given.balance,
            alpha=given.first_look,
            gamma=given.look_every,
            interval=given.interval,
            widen_after=given.widen_after,
            cooldown=given.cooldown,
            ageing=given.ageing,
            tuning=Tuning(band=given.band, origin=given.origin, net=given.net, hysteresis=given.hysteresis),
        )


class Control:
    """Decides when to look and what to move."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.policy = policy_of(settings.policy)
        self.alpha = self.wait = settings.alpha
        self.rule = self.policy.interval if settings.interval == "policy" else settings.interval
        self.band = settings.tuning.band
        self.looks = self._quiet = 0  # all looks; those since a move or a wider band
        self._moved_at: dict[int, int] = {}
        self._home: I64 | None = None  # (V,) rank of each block before any move

    def due(self, iteration: int, urgent: bool = False) -> bool:
        """Whether to look now; counts the call. `urgent`: a rank must be emptied."""
        if iteration % self.settings.gamma or not (self.policy.looks or urgent):
            return False
        self.wait -= 1
        return self.wait <= 0 or urgent

    def look(self, stats: Stats, iteration: int, superstep: float) -> Look:
        """Decide, and return the entry of the ledger; the caller makes the moves."""
        tuning = steady(replace(self.settings.tuning, band=self.band), stats.noise)
        fine = balanced(self.policy, stats, tuning.band)
        count, known = (0, []) if fine else ranking(stats, tuning, tuning.shown)
        moves = [] if fine else decide(self.policy, stats, tuning, self._resting())
        predicted = forecast(stats, moves)
        reach, bound = True, -1.0
        if not fine:
            greedy = by_finish(stats)
            reach = reachable(stats, greedy, tuning.band)
            bound = min(predicted, forecast(stats, proposal(stats, greedy)))
        self._home = stats.owner.copy() if self._home is None else self._home
        self.looks += 1
        self._moved_at.update({block: self.looks for block, _ in moves})
        before = self.alpha
        settled = fine or not (moves or self.policy.literal)  # where no move helps, all is balanced
        self.alpha = self.wait = next_alpha(before, settled, self.rule, self.settings.alpha)
        if not self.policy.literal:
            self.alpha = self.wait = min(self.alpha, self._affordable(stats, superstep))
        self._widen(bool(moves))
        return Look(
            iteration=iteration,
            alpha=before,
            next_alpha=self.alpha,
            rank_time=tuple((stats.rank_time if stats.seen is None else stats.seen).tolist()),
            superstep=superstep,
            unmoved=forecast(stats, proposal(stats, self._home)),
            balanced=fine,
            reachable=reach,
            n_candidates=count,
            candidates=tuple(known),
            moves=tuple(
                Move(block=i, source=int(stats.owner[i]), target=j, bytes=int(stats.size[i]))
                for i, j in moves
            ),
            predicted=predicted,
            remaining=stats.remaining,
            look_seconds=0.0,
            drained=tuple(sorted(stats.leaving)),
            bound=bound,
        )

    def _affordable(self, stats: Stats, superstep: float) -> int:
        """Calls from look to look with which looks take MOST_LOOKING of the time at most.

        MOST_ALPHA with a rule that the user chose.
        """
        if self.settings.interval != "policy":
            return max(MOST_ALPHA, self.settings.alpha)
        calls = stats.look_cost / (MOST_LOOKING * self.settings.gamma * max(superstep, 1e-300))
        return min(max(ceil(calls), 1), MOST_ALPHA)

    def _widen(self, moved: bool) -> None:
        """Algorithm 1 of Gomes (2014). A move restores the band, which it leaves open."""
        self._quiet = 0 if moved else self._quiet + 1
        if moved:
            self.band = self.settings.tuning.band
        elif self.settings.widen_after and self._quiet >= self.settings.widen_after:
            self.band = wider(self.band)
            self._quiet = 0

    def _resting(self) -> frozenset[int]:
        since = self.looks + 1 - self.settings.cooldown
        return frozenset(block for block, at in self._moved_at.items() if at >= since)


def steady(tuning: Tuning, noise: float) -> Tuning:
    """The tuning, its hysteresis increased by the noise unless it is 0 (Gomes 2014)."""
    return replace(tuning, hysteresis=tuning.hysteresis + noise) if tuning.hysteresis else tuning
