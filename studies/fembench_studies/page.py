"""A study run: what is missing is measured, then its page is written, with
all tables, plots and exports."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fembench.base.files import write_atomic
from fembench.errors import InputError
from fembench.launch.scratch import occupied
from fembench.report import table
from fembench.report.page import Section, render, write_exports
from fembench.report.tables import CampaignResults
from fembench_studies.attempts import Attempts, Tell
from fembench_studies.study import Study, StudyOutcome, StudyRequest, report_name

TEMPLATES = {"report.md": "report.md.j2", "index.html": "page.html.j2"}


class StudyPage(NamedTuple):
    """A written page."""

    path: Path  # index.html
    findings: str
    good: bool  # nothing failed, every run is valid, and every claim is kept


def run_study(study: Study, request: StudyRequest, tell: Tell) -> StudyPage:
    """Measure and publish; a second call resumes where the first
    stopped. Raises InputError."""
    attempts = Attempts(tell)
    with contextlib.ExitStack() as held:
        for name in () if request.only_kept else study.folders:
            held.enter_context(occupied(request.folder / name))
        outcome = study.measure(request, attempts)
        if outcome is None:
            raise InputError(_nothing(request, attempts))
        path = publish(request.folder, study.title, outcome, request.only)
    shown = [t for t in (*outcome.judged, *outcome.findings) if t.rows]
    findings = "\n\n".join(f"{t.title}\n\n{table.text(t)}\n\n{t.note}" for t in shown)
    return StudyPage(path, findings, outcome.good and not attempts.failed)


def _nothing(request: StudyRequest, attempts: Attempts) -> str:
    """Why there is nothing to show."""
    if attempts.failed:
        return f"{request.folder}: nothing could be measured; first failure: {attempts.failed[0]}"
    return f"{request.folder}: nothing measured yet; leave --page out"


def publish(folder: Path, title: str, outcome: StudyOutcome, only: Sequence[str] = ()) -> Path:
    """Write the page into the study's folder; returns index.html. `only`: its
    experiments; () means all."""
    target = folder / report_name(only)
    judged = [Section("Claims", [], outcome.judged)]
    sections = [s for s in (*judged, *outcome.sections) if s.plots or any(t.rows for t in s.tables)]
    for section in sections:
        for made in section.tables:
            write_atomic(target / "tables" / f"{made.name}.csv", table.to_csv(made))
        for plot in section.plots:
            write_atomic(target / "plots" / f"{plot.name}.svg", plot.svg)
    campaign = CampaignResults(title, list(outcome.records), list(outcome.failures), dict(outcome.fields), "")
    files = write_exports(campaign, target) if campaign.records else []
    for name, template in TEMPLATES.items():
        write_atomic(target / name, render(template, campaign, sections, files, outcome.synthetic))
    return target / "index.html"
