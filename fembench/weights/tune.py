"""The runs of `fembench tune`: an equal run, weights, a weighted run, then both again in turns.

Each round computes weights from the run of the round before. A further round is not always better: a rank
with less work may seem faster than it is (its part fits into a cache, or it saves its CPU quota while it
waits). Therefore the weights whose own run was fastest are compared with equal shares.

If the slowest host (or emulated rank) can contribute little, the others also run without it, so that its
benefit is measured and not only computed.

The order is reversed in every second turn, so that a host that slows down steadily favours neither.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from fembench.records.case import Case
from fembench.records.record import Record
from fembench.records.weights import Weights, as_text, shares_of
from fembench.weights.advice import LEAST_GAIN, largest_gains
from fembench.weights.make import by_time
from fembench.weights.observe import owners_of, run_seconds
from fembench.weights.stale import foreign_work

SETTLED = 0.01  # if no share changed by more (relative), another round is not worth its time

WEAK = 0.3  # fraction of the time; an owner that can save more is kept without a test
PROOF = 2  # pairs that suffice if a rank can contribute almost nothing
Say = Callable[[str], None]


class Runner(Protocol):
    """Runs a case and keeps its record. Raises RunFailedError."""

    def __call__(self, case: Case, word: str, /, *, without: str = "") -> Record:
        """`word` labels the run in the progress line; `without` names a host that gets no ranks."""


@dataclass(frozen=True)
class RunWithoutHost:
    """The run without one owner."""

    owner: str  # a host, or "rank 3" if all ranks are on one host
    host: str  # for the runner; "" if the owner is an emulated rank
    case: Case


@dataclass
class Trail:
    """The runs of one tuning, in order."""

    equal: list[Record] = field(default_factory=list)  # of the comparison
    weighted: list[Record] = field(default_factory=list)  # of the comparison, one per equal run
    without: list[Record] = field(default_factory=list)  # of the comparison, without `left_out`
    left_out: str = ""  # the weakest owner; "" if there are no runs without it
    rounds: list[tuple[Record, Weights]] = field(default_factory=list)  # each run and the weights from it
    tried: list[tuple[Weights, Record]] = field(default_factory=list)  # weights and a run with them

    @property
    def records(self) -> list[Record]:
        """All runs, each once."""
        rounds = [*(record for record, _ in self.rounds), *(record for _, record in self.tried)]
        return list({id(r): r for r in (*rounds, *self.equal, *self.weighted, *self.without)}.values())

    @property
    def quiet(self) -> "Trail":
        """Only those turns of the comparison that no foreign work disturbed; all of them if there is none."""
        turns = list(zip(self.equal, self.weighted, self.without or self.equal))
        kept = [turn for turn in turns if not foreign_work([run.environment for run in turn])]
        equal, weighted, without = map(list, zip(*(kept or turns)))
        return replace(self, equal=equal, weighted=weighted, without=without if self.without else [])

    @property
    def weights(self) -> Weights:
        """The weights to compare with equal shares: those with the fastest run; after one round, its own."""
        if not self.tried:
            return self.rounds[-1][1]
        return min(self.tried, key=lambda one: run_seconds([one[1]])[0])[0]


def close_the_loop(
    case: Case,
    run: Runner,
    say: Say,
    *,
    rounds: int = 2,
    pairs: int = 6,
    can_do_without: Callable[[str], bool] = lambda host: True,
) -> Trail:
    """Measure and compute weights in up to `rounds` rounds, then time equal and weighted runs in turns.

    The timings of the comparison are not those from which the weights were computed.
    `can_do_without`: whether the runner can start ranks on all hosts except this one.
    """
    equal = case.with_(shares="")
    trail = Trail()
    record = run(equal, "equal")
    for number in range(1, rounds + 1):
        weights = by_time([record])
        trail.rounds.append((record, weights))
        say(f"round {number}: shares {as_short_text(weights)}")
        change = largest_change(record.partition.targets, shares_of(weights))
        if rounds == 1 or (trail.tried and change < SETTLED):
            break
        record = run(equal.with_(shares=as_text(weights)), f"round {number}")
        trail.tried.append((weights, record))
    weighted = equal.with_(shares=as_text(trail.weights))
    others = without_weakest(equal, trail)
    if others is not None and others.host and not can_do_without(others.host):
        others = None
    trail.left_out = others.owner if others is not None else ""
    if min(gains_of(trail).values()) < LEAST_GAIN:
        pairs = min(pairs, PROOF)
    contestants = [("equal", equal, "", trail.equal), ("weighted", weighted, "", trail.weighted)]
    if others is not None:
        contestants.append((f"without {others.owner}", others.case, others.host, trail.without))
    for pair in range(1, pairs + 1):
        for name, one, host, kept in contestants[:: 1 if pair % 2 else -1]:
            kept.append(run(one, f"pair {pair}/{pairs}, {name}", without=host))
    return trail


def gains_of(trail: Trail) -> dict[str, float]:
    """Owner -> the largest fraction of the others' time that it can save."""
    return largest_gains(shares_of(trail.weights), owners_of(trail.rounds[0][0]))


def without_weakest(equal: Case, trail: Trail) -> RunWithoutHost | None:
    """The weighted run without the weakest owner; None if that one contributes much or cannot be left out."""
    gains = gains_of(trail)
    weakest = min(gains, key=lambda owner: gains[owner])
    if len(gains) < 2 or gains[weakest] > WEAK:
        return None
    owners = owners_of(trail.rounds[0][0])
    kept = [rank for rank, owner in enumerate(owners) if owner != weakest]
    speeds = equal.synthetic.emulate.split(",")
    hosts = {rank.host for rank in trail.weights.ranks}
    if len(hosts) == 1 and not equal.synthetic.emulate:
        return None  # a rank can only be left out together with its host
    shares = as_text(trail.weights, kept)
    return RunWithoutHost(
        owner=weakest,
        host=weakest if len(hosts) > 1 else "",
        case=equal.with_(
            ranks=len(kept),
            shares=shares if len(kept) > 1 else "",
            emulate=",".join(speeds[rank] for rank in kept) if equal.synthetic.emulate else "",
        ),
    )


def largest_change(old: tuple[float, ...], new: tuple[float, ...]) -> float:
    """The largest relative difference between two vectors of shares."""
    return max(abs(b / a - 1) for a, b in zip(old, new))


def as_short_text(weights: Weights) -> str:
    """'0.40 : 0.40 : 0.20'."""
    return " : ".join(f"{share:.3f}" for share in shares_of(weights))
