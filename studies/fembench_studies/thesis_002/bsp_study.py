"""Gomes (2014) repeated: MigBSP++, rebalancing of bulk-synchronous programs."""

import functools
from collections.abc import Sequence

import msgspec

from fembench.base.config import read_json
from fembench.base.files import write_atomic
from fembench.launch.scratch import writable
from fembench.report.page import Section
from fembench_studies.attempts import Attempts
from fembench_studies.bsp.bsp_job import ProgramJob, ProgramTimes, launch_program
from fembench_studies.study import StudyOutcome, StudyRequest
from fembench_studies.thesis_002.bsp_plan import (
    FULL,
    QUICK,
    SPEEDS,
    BspEffort,
    BspScenario,
    job_of,
    scenarios,
)
from fembench_studies.thesis_002.bsp_tables import (
    Found,
    best_table,
    claims,
    overhead_table,
    plots,
    summary,
    text_table,
    times_table,
)


def chosen(effort: BspEffort, only: Sequence[str] = ()) -> list[BspScenario]:
    """The requested scenarios; () means those of the effort."""
    names = only or [f"{table}-{name}" for table, name in effort.scenarios]
    return [s for s in scenarios() if s.key in names]


def measure(request: StudyRequest, attempts: Attempts) -> StudyOutcome | None:
    """The study: both programs on seven emulated machines. Raises InputError."""
    effort = QUICK if request.quick else FULL
    found = times_of(request, chosen(effort, request.only), effort, attempts)
    return outcome(found) if found else None


def times_of(
    request: StudyRequest, todo: Sequence[BspScenario], effort: BspEffort, attempts: Attempts
) -> Found:
    """Times of every strategy, one file per scenario; a file of a
    different job is measured again."""
    writable(request.folder)
    made = [(s.key, functools.partial(_one, request, s, job_of(s, effort, request.cores))) for s in todo]
    return dict(attempts.each(made, lambda one: summary(*one)))


def _one(
    request: StudyRequest, scenario: BspScenario, job: ProgramJob
) -> tuple[BspScenario, ProgramTimes] | None:
    path = request.folder / f"table-{scenario.key}.json"
    kept = read_json(path, ProgramTimes) if path.is_file() else None
    if kept is None or kept.job != job:
        if request.only_kept:
            return None
        kept = launch_program(job, request.folder)
        write_atomic(path, msgspec.json.format(msgspec.json.encode(kept), indent=1))
    return scenario, kept


def compose(found: Found) -> list[Section]:
    """The sections of the page: findings, the tables of the thesis, curves."""
    sections = [
        Section("Findings", [], [best_table(found)]),
        Section("Statements of the text", [], [text_table(found)]),
        Section("Overhead without moves", [], [overhead_table(found)]),
        Section("Times of every strategy", [], [times_table(found)]),
        Section("Curves", plots(found), []),
    ]
    return [s for s in sections if s.plots or any(t.rows for t in s.tables)]


def outcome(found: Found) -> StudyOutcome:
    """The times, ready for the page."""
    speeds = ", ".join(f"{s:g}" for s in SPEEDS)
    return StudyOutcome(
        sections=compose(found),
        claims=claims(found),
        findings=[best_table(found), overhead_table(found)],
        valid=all(cell.agrees for times in found.values() for cell in times.cells),
        synthetic=[f"seven emulated machines of speeds {speeds} (a guess), dilated"],
    )
