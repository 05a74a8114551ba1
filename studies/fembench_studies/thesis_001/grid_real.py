"""Rings, fork and join of Mendes (2004) with real messages, predicted
from the network measured here.

All runs are measured in several passes, one after the other, so that the passes of a run are
minutes apart: a machine may be slower or faster for seconds on end (docs/decisions/0014). Each
begins with a profile of its own. A run is judged by the median error of the passes that test its
prediction.
"""

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fembench.launch.scratch import writable
from fembench.records.profile import Profile
from fembench.report.table import Table
from fembench_studies.attempts import Attempts, ProgramEffort, Tell
from fembench_studies.claims import StudyClaim
from fembench_studies.declared import captions
from fembench_studies.programs.compared_messages import (
    LIMIT,
    MESSAGES,
    ComparedTime,
    Refused,
    compared,
    judged,
    lasting,
)
from fembench_studies.programs.kept import ProgramRuns
from fembench_studies.programs.real_messages import (
    KINDS,
    Calls,
    case_of_messages,
    error_percent,
    predicted_run,
)
from fembench_studies.programs.record import AppRecord
from fembench_studies.study import wanted
from fembench_studies.thesis_001.grid_plan import printed

MAKESPAN_ROW, MESSAGES_ROW = range(2)
MOST = {"ring": 3, "fork": 4, "join": 4}  # ranks
ENOUGH = 3  # passes that test the prediction of a run


@dataclass(frozen=True)
class Real:
    """An application with messages of one size, sent by one MPI call."""

    kind: str
    n_bytes: int
    calls: Calls

    @property
    def name(self) -> str:
        """A file name: 'real-ring-65536-isend'."""
        return f"real-{self.kind}-{self.n_bytes}-{self.calls}"

    @property
    def thesis_error(self) -> float | None:
        """The error of the corresponding run in the thesis, in per
        cent of its measured time."""
        like = LIKE.get((self.kind, self.n_bytes, self.calls))
        if like is None:
            return None
        (table, row), what = like, "" if self.kind == "ring" else "_delay"
        said, estimated = printed(table)[row], "predicted" if what else "estimated"
        return error_percent(float(said[f"measured{what}_us"]), float(said[f"{estimated}{what}_us"]))


CALLS: tuple[Calls, ...] = ("isend", "send")
SIZES = (1 << 10, 1 << 16, 1 << 17, 1 << 18, 3 << 17, 1 << 19, 1 << 21, 1 << 22)  # bytes
RUNS = tuple(Real(*each) for each in itertools.product(KINDS, SIZES, CALLS))
LIKE = {  # run of the thesis: its table and row
    ("ring", 1 << 16, "isend"): ("table_4_25", 0),
    ("ring", 1 << 21, "isend"): ("table_4_38", 0),
    ("ring", 1 << 21, "send"): ("table_5_11", 0),
    ("fork", 1 << 22, "send"): ("fork_join", 0),
    ("join", 1 << 22, "send"): ("fork_join", 1),
}
OFF = 10.0  # per cent of the runs that may miss
UNTESTED = 20.0  # per cent of the runs that may be INVALID


Made = tuple[AppRecord, Profile]  # a run, and the profile by which it was predicted


@dataclass(frozen=True)
class RealRun:
    """A run with its scores in each pass."""

    real: Real
    records: tuple[AppRecord, ...]
    scores: tuple[tuple[ComparedTime, ...], ...]  # [makespan, messages][pass]

    @property
    def medians(self) -> list[ComparedTime]:
        """[makespan, messages] of the pass by which each is judged: that with the median error."""
        return [_judged(each) for each in self.scores]


def _judged(passes: Sequence[ComparedTime]) -> ComparedTime:
    """The pass by which a run is judged; refused if of more than three, fewer than three test it."""
    found, tested = judged(passes), sum(not one.reason for one in passes)
    if found.reason or tested >= ENOUGH or len(passes) <= ENOUGH:
        return found
    few = (
        f"refused: {tested} of {len(passes)} passes test it, expected {ENOUGH}: the machine changes too often"
    )
    return found._replace(reason=Refused(few))


def measure(
    runs: ProgramRuns,
    networks: Iterable[Profile],
    attempts: Attempts,
    effort: ProgramEffort,
    only: Sequence[str] = (),
) -> list[RealRun]:
    """The requested applications, each calibrated, predicted and run in every pass until three have tested
    its prediction. A pass begins with a profile of the network. What no pass can test is run in the first."""
    writable(runs.folder)
    found: dict[Real, list[Made]] = {real: [] for real in RUNS if wanted(real.kind, only)}
    for number, profile in enumerate(networks, 1):
        todo = [
            (real.name, functools.partial(_one, real, number, profile, runs, effort, attempts.tell))
            for real, made in found.items()
            if not _done(made)
        ]
        attempts.tell(f"rings, forks and joins: pass {number} of at most {effort.passes}")
        for real, record in attempts.each(todo, _line):
            found[real].append((record, profile))
        if all(map(_done, found.values())):
            break
    return [_run(real, made) for real, made in found.items() if made]


def _done(made: Sequence[Made]) -> bool:
    """Whether no later pass can test the prediction, or enough have."""
    if not made:
        return False
    tested = [one for one in made if not compared(*one)[MAKESPAN_ROW].reason]
    return bool(lasting(made[0][0])) or len(tested) >= ENOUGH


def _run(real: Real, made: Sequence[Made]) -> RealRun:
    scores = tuple(zip(*(compared(record, profile) for record, profile in made)))
    return RealRun(real, tuple(record for record, _ in made), scores)


def _line(made: tuple[Real, AppRecord]) -> str:
    _, record = made
    messages = compared(record)[MESSAGES_ROW]
    return f"{record.id}: messages {messages.signed:+.1f} % off, {messages.verdict}"


def _one(
    real: Real, number: int, profile: Profile, runs: ProgramRuns, effort: ProgramEffort, tell: Tell
) -> tuple[Real, AppRecord] | None:
    """The record of one pass."""
    name = f"{real.name}-{number}"
    ranks = min(len(profile.environment.rank_host), MOST[real.kind])
    case = case_of_messages(
        real.kind, ranks, real.calls, n_bytes=real.n_bytes, repetitions=effort.real_repetitions
    )

    def make() -> AppRecord:
        return predicted_run(case, profile, id=name, scratch=runs.folder, source="machine.json", say=tell)

    def serves(record: AppRecord) -> bool:
        """Whether it was predicted from this profile, and tests that or is refused for good."""
        tests = not any(one.reason for one in compared(record, profile))
        return record.created >= profile.created and (tests or bool(lasting(record)))

    record = runs.kept(name, case, make, serves)
    return (real, record) if record else None


def claims(found: Sequence[RealRun]) -> list[StudyClaim]:
    """Nine in ten runs take as long as the measured network predicts:
    their messages, and as a whole."""
    return [_claim([f.medians[k] for f in found]) for k in (MESSAGES_ROW, MAKESPAN_ROW)] if found else []


def _claim(scores: Sequence[ComparedTime]) -> StudyClaim:
    """The claim that few of these runs are off; INVALID if too many do
    not test their prediction."""
    asked = [one for one in scores if not isinstance(one.reason, Refused)]
    tested = [one for one in asked if not one.reason]
    untested = 100 * (1 - len(tested) / max(len(asked), 1))
    reasons = Counter(one.reason.partition(":")[0] for one in asked if one.reason)
    most = next((why for why, _ in reasons.most_common(1)), "no size can be predicted")
    off = 100 * sum(not one.kept for one in tested) / max(len(tested), 1)
    return StudyClaim(
        f"{scores[0].what} of rings, fork and join: runs off by more than the limit, of {len(tested)}",
        OFF,
        off,
        reason=f"{untested:.0f} % of the runs test nothing; most often: {most}"
        if untested > UNTESTED
        else "",
    )


def real_table(found: Sequence[RealRun]) -> Table:
    """Predicted and measured times of the judged passes, with the range of the errors of all that test
    the prediction."""
    rows = [_row(f, passes) for f in found for passes in f.scores]
    return captions("thesis_001").table("real_messages", rows, messages=MESSAGES, limit=LIMIT)


def _row(run: RealRun, passes: Sequence[ComparedTime]) -> tuple[object, ...]:
    real, score = run.real, _judged(passes)
    errors = [one.signed for one in passes if not one.reason]
    return (
        f"{real.kind}, {real.n_bytes >> 10} KiB, MPI_{real.calls.capitalize()}: {score.what}",
        run.records[0].case.ranks,
        score.written,
        score.predicted,
        score.measured,
        len(errors),
        score.signed,
        min(errors, default=None),
        max(errors, default=None),
        score.verdict,
        real.thesis_error if (score.what == "makespan") == (real.kind == "ring") else None,
    )
