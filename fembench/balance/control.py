"""The state between looks: gamma, alpha, resting blocks. Each look gives one entry of the ledger.

There is no MPI and no clock here: the balancer on ranks and the one on a virtual clock use the same object.
"""

from dataclasses import dataclass, field, replace

from fembench.balance.detect import by_finish, next_alpha, reachable
from fembench.balance.observation import Stats, Tuning, proposal
from fembench.balance.policies import POLICIES, balanced, decide
from fembench.balance.potential import forecast, ranking
from fembench.records.ledger import Look, Move

MOST_ALPHA = 16  # calls between looks; with more, a change would be detected too late


@dataclass(frozen=True)
class Settings:
    """The options of a user."""

    policy: str = "amortised"
    alpha: int = 2  # calls before the first look
    gamma: int = 10  # iterations between calls
    cooldown: int = 2  # looks for which a block stays on its rank after a move
    tuning: Tuning = field(default_factory=Tuning)


class Control:
    """Decides when to look and what to move."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.policy = settings, POLICIES[settings.policy]
        self.alpha = self.wait = settings.alpha
        self.looks = 0
        self._moved_at: dict[int, int] = {}

    def due(self, iteration: int, urgent: bool = False) -> bool:
        """Whether to look after this iteration; counts the call. `urgent`: a rank must be emptied."""
        if iteration % self.settings.gamma or not (self.policy.looks or urgent):
            return False
        self.wait -= 1
        return self.wait <= 0 or urgent

    def look(self, stats: Stats, iteration: int, superstep: float) -> Look:
        """Decide, and return the entry of the ledger; the caller makes the moves."""
        tuning = steady(self.settings.tuning, stats.noise)
        fine = balanced(self.policy, stats, tuning.band)
        count, known = (0, []) if fine else ranking(stats, tuning, tuning.shown)
        moves = [] if fine else decide(self.policy, stats, tuning, self._resting())
        predicted = forecast(stats, moves)
        self.looks += 1
        self._moved_at.update({block: self.looks for block, _ in moves})
        before = self.alpha
        settled = fine or not (moves or self.policy.literal)  # if no move helps, that counts as balanced
        self.alpha = self.wait = next_alpha(before, settled, halve=self.policy.by_block)
        if not self.policy.literal:
            self.alpha = self.wait = min(self.alpha, max(MOST_ALPHA, before))
        return Look(
            iteration=iteration,
            alpha=before,
            next_alpha=self.alpha,
            rank_time=tuple((stats.rank_time if stats.seen is None else stats.seen).tolist()),
            superstep=superstep,
            balanced=fine,
            reachable=fine or reachable(stats, tuning.band),
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
            bound=-1.0 if fine else min(predicted, forecast(stats, proposal(stats, by_finish(stats)))),
        )

    def _resting(self) -> frozenset[int]:
        since = self.looks + 1 - self.settings.cooldown
        return frozenset(block for block, at in self._moved_at.items() if at >= since)


def steady(tuning: Tuning, noise: float) -> Tuning:
    """The tuning with its hysteresis increased by the noise; a hysteresis of 0 stays 0 (Gomes 2014)."""
    return replace(tuning, hysteresis=tuning.hysteresis + noise) if tuning.hysteresis else tuning
