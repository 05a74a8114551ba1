"""Calzeta and de Souza (2008) repeated: simulated execution graphs of two small programs."""

from collections.abc import Sequence

from fembench.report.page import Section
from fembench_studies.attempts import Attempts
from fembench_studies.programs.kept import ProgramRuns
from fembench_studies.study import StudyOutcome, StudyRequest
from fembench_studies.thesis_003 import slaves_live
from fembench_studies.thesis_003.slaves_live import SlavesRun
from fembench_studies.thesis_003.slaves_tables import (
    claims,
    error_table,
    loops_plot,
    messages_table,
    process_table,
    speedup_table,
    times_plot,
)


def compose(found: Sequence[SlavesRun]) -> list[Section]:
    """All sections of the page."""
    return [
        Section("Findings", [], [error_table(found)]),
        Section("Times", [times_plot(found)], [process_table(live) for live in found]),
        Section("Messages", [], [messages_table(found)]),
        Section("Speed-up", [], [speedup_table(found)]),
        Section("Loops", [loops_plot(found)], []),
    ]


def measure(request: StudyRequest, attempts: Attempts) -> StudyOutcome | None:
    """The study: both programs on emulated machines. Raises InputError."""
    effort = slaves_live.QUICK if request.quick else slaves_live.FULL
    runs = ProgramRuns(request.folder / "runs", request.only_kept)
    found = slaves_live.measure(runs, effort, request.cores, attempts, request.only)
    return outcome(found) if found else None


def outcome(found: Sequence[SlavesRun]) -> StudyOutcome:
    """The runs, ready for the page."""
    return StudyOutcome(
        sections=compose(found),
        findings=[error_table(found), messages_table(found)],
        claims=claims(found),
        synthetic=list(dict.fromkeys(one.record.environment.synthetic for one in found)),
    )
