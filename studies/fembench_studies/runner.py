"""Run a study: measure what is missing, then write its page."""

import contextlib
from pathlib import Path
from typing import NamedTuple

from fembench.errors import InputError
from fembench.launch.scratch import occupied
from fembench.report import table
from fembench_studies.attempts import Attempts, Tell
from fembench_studies.page import publish
from fembench_studies.study import Study, StudyRequest


class StudyPage(NamedTuple):
    """A written page."""

    path: Path  # index.html
    findings: str
    good: bool  # nothing failed, every run is valid, and every claim is kept


def run_study(study: Study, request: StudyRequest, tell: Tell) -> StudyPage:
    """Measure and publish; a second call resumes where the first stopped. Raises InputError."""
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
