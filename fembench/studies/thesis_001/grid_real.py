"""Rings, fork and join of Mendes (2004) with real messages, predicted from the network measured here."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from fembench.launch.scratch import writable
from fembench.records.profile import Profile, host_names
from fembench.report.table import Table, words
from fembench.studies.attempts import Attempts, Tell
from fembench.studies.claims import StudyClaim, ratio_claim
from fembench.studies.layout import value
from fembench.studies.programs.hlogp_sums import error_percent
from fembench.studies.programs.kept import ProgramRuns
from fembench.studies.programs.real_messages import (
    LIMIT,
    Calls,
    ComparedTime,
    case_of_messages,
    compared,
    predicted_run,
)
from fembench.studies.programs.record import AppRecord
from fembench.studies.study import wanted
from fembench.studies.thesis_001.grid_plan import MICRO, printed, rings

MOST = {"ring": 3, "fork": 9, "join": 9}  # hosts in the thesis


@dataclass(frozen=True)
class Real:
    """One application of the thesis, with messages of one size sent by one MPI call."""

    kind: str
    n_bytes: int
    calls: Calls
    like: str  # the corresponding run in the thesis: a name of RINGS, or fork, join

    @property
    def name(self) -> str:
        """A file name: 'real-ring-65536-isend'."""
        return f"real-{self.kind}-{self.n_bytes}-{self.calls}"

    @property
    def thesis_error(self) -> float:
        """The thesis' own error, in per cent of its measured time."""
        for ring in rings():
            if ring.name == self.like:
                return error_percent(ring.measured, ring.estimated)
        said = next(r for r in printed("fork_join") if r["case"] == self.like)
        return error_percent(*(float(said[f"{n}_delay_us"]) * MICRO for n in ("measured", "predicted")))


RUNS = (
    Real("ring", 65536, "isend", "64 KiB, one site"),
    Real("ring", 2097152, "isend", "2 MiB, one site"),
    Real("ring", 2097152, "send", "2 MiB, one site, LAM"),
    Real("fork", 4194304, "send", "fork"),
    Real("join", 4194304, "send", "join"),
)


@dataclass(frozen=True)
class RealRun:
    """A run with its score."""

    real: Real
    record: AppRecord
    scores: tuple[ComparedTime, ...]


def measure(
    runs: ProgramRuns, profile: Profile, attempts: Attempts, repetitions: int, only: Sequence[str] = ()
) -> list[RealRun]:
    """The requested applications, each calibrated, predicted and run."""
    writable(runs.folder)
    todo = [
        (real.name, functools.partial(_one, real, profile, runs, repetitions, attempts.tell))
        for real in RUNS
        if wanted(real.kind, only)
    ]
    return attempts.each(todo, _line)


def _line(run: RealRun) -> str:
    return f"{run.real.name}: {run.scores[0].signed:+.1f} % off, {run.scores[0].verdict}"


def _one(real: Real, profile: Profile, runs: ProgramRuns, repetitions: int, tell: Tell) -> RealRun | None:
    ranks = min(len(profile.environment.rank_host), MOST[real.kind])
    case = case_of_messages(real.kind, ranks, real.calls, n_bytes=real.n_bytes, repetitions=repetitions)

    def make() -> AppRecord:
        return predicted_run(
            case, profile, id=real.name, scratch=runs.folder, source="machine.json", say=tell
        )

    record = runs.kept(real.name, case, make)
    return RealRun(real, record, tuple(compared(record, host_names(profile)))) if record else None


def claims(found: Sequence[RealRun]) -> list[StudyClaim]:
    """Runs with real messages take as long as the measured network predicts."""
    return [
        ratio_claim(
            f"real messages, {f.real.name.removeprefix('real-')}",
            LIMIT,
            f.scores[0].predicted,
            f.record.seconds,
            f.scores[0].reason,
        )
        for f in found
    ]


def real_table(found: Sequence[RealRun]) -> Table:
    """Predicted and measured times, and the error of the median with its interval."""
    rows = [
        (
            f"{f.real.kind}, {f.real.n_bytes >> 10} KiB, MPI_{f.real.calls.capitalize()}: {score.what}",
            f.record.case.ranks,
            score.predicted,
            score.measured,
            score.signed,
            *score.between,
            score.verdict,
            f.real.thesis_error if (score.what == "makespan") == (f.real.kind == "ring") else None,
        )
        for f in found
        for score in f.scores
    ]
    columns = (
        words("run"),
        value("ranks"),
        value("predicted_s"),
        value("measured_s"),
        value("error_percent"),
        value("error_from_percent", "from %"),
        value("error_to_percent", "to %"),
        words("verdict"),
        value("thesis_error_percent", "thesis' error %"),
    )
    return Table(
        "real_messages",
        "Rings, fork and join with real messages, predicted from the measured network",
        "Real messages on this machine. Os, L and Or come from `characterize --network` (machine.json), "
        "the cost of tasks from a calibration made just before; the prediction was written before the run. "
        "The error is that of the median, in per cent of the measured time; 'from' and 'to' are the errors "
        f"at the ends of its 95 % interval. If the interval is wider than ± {LIMIT:g} %, the run is INVALID "
        "and does not test the prediction. 'messages' is the time beyond computing: all messages of a ring, "
        "the send overheads of a fork, the receive overheads of a join. The thesis gives the errors of whole "
        "rings, and of the delays of fork and join.",
        columns,
        tuple(rows),
    )
