"""Herai (2005) repeated: interval predictions of farms, on a
virtual park and under MPI."""

from collections.abc import Sequence

from fembench.report.page import Section
from fembench_studies.attempts import Attempts
from fembench_studies.pamela.park import LABEL, experiment
from fembench_studies.programs.kept import ProgramRuns
from fembench_studies.study import StudyOutcome, StudyRequest, wanted
from fembench_studies.thesis_000 import farm_live
from fembench_studies.thesis_000.farm_gates import live_claims, park_claims
from fembench_studies.thesis_000.farm_live import FarmRun
from fembench_studies.thesis_000.farm_printed import BEYOND, KINDS, thesis_scores
from fembench_studies.thesis_000.farm_tables import (
    Results,
    by_machines,
    every_run,
    hits,
    live_table,
    machines,
    means,
    speedups,
    task_costs,
    times,
)


def virtual(only: Sequence[str] = ()) -> Results:
    """The requested applications on the virtual park; () means all."""
    kinds = {name: kind for name, kind in KINDS.items() if wanted(name, only)}
    made: Results = {name: experiment(app, with_q=q) for name, (app, q, *_) in kinds.items()}
    beyond = {name: kind for name, kind in BEYOND.items() if wanted(name.split()[0], only)}
    return made | {name: experiment(app, with_q=q, compose="phase") for name, (app, q) in beyond.items()}


def compose(results: Results, live: Sequence[FarmRun]) -> list[Section]:
    """All sections of the page."""
    theirs = thesis_scores()
    sections = [Section("Findings", [], [means(results, theirs)])]
    sections += [Section("Under MPI", [], [live_table(live)])] if live else []
    if results:
        named = {name: found for name, found in results.items() if name in KINDS}
        tables = [by_machines(named), speedups(named), task_costs(named)]
        sections.append(Section("By number of machines", [], tables))
    sections.append(Section("Machines", [], [machines()]))
    for name in (n for n in KINDS if n in results):
        plots = [times(name, results[name]), hits(name, results[name], theirs)]
        sections.append(Section(name, plots, [every_run(name, results[name])]))
    return sections


def measure(request: StudyRequest, attempts: Attempts) -> StudyOutcome:
    """The study: farms under MPI, then the virtual park. Raises InputError."""
    effort = farm_live.QUICK if request.quick else farm_live.FULL
    runs = ProgramRuns(request.folder / "runs", request.only_kept)
    live = farm_live.measure(runs, effort, request.cores, attempts, request.only)
    attempts.tell("virtual park: seven predictions per version, 2 to 32 machines")
    return outcome(virtual(request.only), live)


def outcome(results: Results, live: Sequence[FarmRun]) -> StudyOutcome:
    """The results, ready for the page."""
    findings = [means(results, thesis_scores())] if results else []
    findings += [live_table(live)] if live else []
    return StudyOutcome(
        sections=compose(results, live),
        findings=findings,
        claims=[*live_claims(live), *park_claims(results)],
        valid=all(one.record.error <= 1 for one in live),
        synthetic=[LABEL, *(["farm programs under MPI: emulated speeds, dilated"] if live else [])],
    )
