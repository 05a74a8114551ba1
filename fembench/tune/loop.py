"""Equal run, weights, weighted run, and both again in turns: the runs of `fembench tune`."""

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from fembench.base.errors import RunFailedError
from fembench.records.case import Case
from fembench.records.record import Record
from fembench.records.weights import Weights, as_text, shares_of
from fembench.weights.make import by_time

SETTLED = 0.01  # largest change of a share, relative, at which another round is not worth its time

Runner = Callable[[Case, str], Record]  # a case and a word for it -> its record; raises RunFailedError
Say = Callable[[str], None]


@dataclass
class Trail:
    """What was run, in order."""

    equal: list[Record] = field(default_factory=list)  # of the comparison
    weighted: list[Record] = field(default_factory=list)  # of the comparison, one after each equal
    rounds: list[tuple[Record, Weights]] = field(default_factory=list)  # each run and the weights made of it

    @property
    def weights(self) -> Weights:
        """The weights that were compared with equal shares."""
        return self.rounds[-1][1]


def close_the_loop(case: Case, run: Runner, say: Say, *, rounds: int = 2, pairs: int = 5) -> Trail:
    """Measure and weigh for at most `rounds` rounds, then time equal and weighted runs in turns.

    The comparison's timings are not those that the weights were made of (VALIDITY E2).
    """
    equal = msgspec.structs.replace(case, shares="")
    trail, now = Trail(), equal
    for number in range(rounds):
        record = run(now, "equal" if number == 0 else f"round {number}")
        weights = by_time([record])
        trail.rounds.append((record, weights))
        say(f"round {number + 1}: shares {as_short_text(weights)}")
        change = largest_change(targets(record), shares_of(weights))
        if number and change < SETTLED:
            break
        now = msgspec.structs.replace(equal, shares=as_text(weights))
    weighted = msgspec.structs.replace(equal, shares=as_text(trail.weights))
    for pair in range(1, pairs + 1):
        trail.equal.append(run(equal, f"pair {pair}/{pairs}, equal"))
        trail.weighted.append(run(weighted, f"pair {pair}/{pairs}, weighted"))
    return trail


def targets(record: Record) -> tuple[float, ...]:
    """The shares that a run was cut for."""
    return record.partition.targets


def largest_change(old: tuple[float, ...], new: tuple[float, ...]) -> float:
    """The largest relative difference of two share vectors."""
    return max(abs(b / a - 1) for a, b in zip(old, new))


def as_short_text(weights: Weights) -> str:
    """'0.40 : 0.40 : 0.20'."""
    return " : ".join(f"{share:.3f}" for share in shares_of(weights))


def failed(message: str) -> RunFailedError:
    """The error of a run that left no record."""
    return RunFailedError(f"tuning stopped: {message}")
