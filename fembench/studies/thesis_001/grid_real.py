"""Thesis-001's rings, fork and join with real messages here, predicted from the measured network."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fembench.base.errors import FembenchError
from fembench.launch.scratch import writable
from fembench.records.profile import Profile, host_names
from fembench.report.table import Table, words
from fembench.studies.experiments import wanted
from fembench.studies.layout import value
from fembench.studies.programs.cases import kept_record
from fembench.studies.programs.real_messages import (
    LIMIT,
    Calls,
    Judged,
    case_of_messages,
    judged,
    predicted_run,
)
from fembench.studies.programs.record import AppRecord, save_app
from fembench.studies.thesis_001.grid_plan import MICRO, error_of, printed, rings

MOST = {"ring": 3, "fork": 9, "join": 9}  # hosts of the thesis
Say = Callable[[str], None]


@dataclass(frozen=True)
class Real:
    """One application with messages of one size and call, as in the thesis."""

    kind: str
    n_bytes: int
    calls: Calls
    like: str  # the thesis' run: a name of RINGS, or fork, join

    @property
    def name(self) -> str:
        """A file name: 'real-ring-65536-isend'."""
        return f"real-{self.kind}-{self.n_bytes}-{self.calls}"

    @property
    def thesis_error(self) -> float:
        """Per cent of what was measured there."""
        for ring in rings():
            if ring.name == self.like:
                return error_of(ring.measured, ring.estimated)
        said = next(r for r in printed("fork_join") if r["case"] == self.like)
        return error_of(*(float(said[f"{n}_delay_us"]) * MICRO for n in ("measured", "predicted")))


RUNS = (
    Real("ring", 65536, "isend", "64 KiB, one site"),
    Real("ring", 2097152, "isend", "2 MiB, one site"),
    Real("ring", 2097152, "send", "2 MiB, one site, LAM"),
    Real("fork", 4194304, "send", "fork"),
    Real("join", 4194304, "send", "join"),
)


@dataclass(frozen=True)
class Found:
    """A run with its score."""

    real: Real
    record: AppRecord
    scores: tuple[Judged, ...]


def measure(
    folder: Path,
    profile: Profile,
    say: Say,
    repetitions: int,
    *,
    only_kept: bool = False,
    only: Sequence[str] = (),
) -> list[Found]:
    """The applications asked for, each calibrated, predicted, run; failed ones are told and left out."""
    runs = folder / "runs"
    writable(runs)
    found = []
    for real in (r for r in RUNS if wanted(r.kind, only)):
        try:
            record = _record(real, profile, runs, repetitions, say, only_kept=only_kept)
        except FembenchError as error:
            say(f"{real.name}: FAILED: {error}")
            continue
        if record is None:
            continue
        scores = tuple(judged(record, host_names(profile)))
        say(f"{real.name}: {scores[0].signed:+.1f} % off, {scores[0].verdict}")
        found.append(Found(real, record, scores))
    return found


def _record(
    real: Real, profile: Profile, runs: Path, repetitions: int, say: Say, *, only_kept: bool
) -> AppRecord | None:
    """The record of a run; made where there is none of this case, unless only kept ones are wanted."""
    ranks, path = min(len(profile.environment.rank_host), MOST[real.kind]), runs / f"{real.name}.json"
    case = case_of_messages(real.kind, ranks, real.calls, n_bytes=real.n_bytes, repetitions=repetitions)
    record = kept_record(path, case, whatever=only_kept)
    if record is None and not only_kept:
        record = predicted_run(case, profile, id=real.name, scratch=runs, source="machine.json", say=say)
        save_app(record, path)
    return record


def real_table(found: Sequence[Found]) -> Table:
    """Predicted before and measured, the error of the median with its interval."""
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
        "Real messages on this machine: Os, L and Or are those of `characterize --network` (machine.json), "
        "tasks those of a calibration just before, and the prediction was written before the run. Error is "
        "that of the median, per cent of what was measured; from, to: the signed error at the ends of the "
        f"median's 95 % interval. Where the median is not known to ± {LIMIT:g} %, the run is INVALID and "
        "judges nothing. 'messages' is the time beyond computing: in a ring all messages, in a fork the send "
        "overheads, in a join the receive overheads. The thesis gives errors of whole rings, and of the "
        "delays of fork and join.",
        columns,
        tuple(rows),
    )
