"""Ferreira (2006) repeated: phases of a parallel FEM program on fast and slow hosts, E0 to E14."""

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fembench
from fembench.base.config import read_json, read_toml
from fembench.base.files import write_atomic
from fembench.base.units import clock
from fembench.bench.campaign import Done
from fembench.records.store import failures
from fembench.report.fields import fields_path, read_fields
from fembench.report.page import Section
from fembench.report.plots import gantt
from fembench.report.plots.canvas import Plot
from fembench.report.results import results
from fembench.report.runs import summary_line
from fembench.report.table import Table
from fembench_studies.attempts import Attempts, Tell
from fembench_studies.catalogue import study_named
from fembench_studies.declared import Comparison, DeclaredPage, captions
from fembench_studies.study import HostsAsked, StudyOutcome, StudyRequest, wanted
from fembench_studies.thesis_004 import body, tables, weighted
from fembench_studies.thesis_004.findings import findings
from fembench_studies.thesis_004.gates import Gates
from fembench_studies.thesis_004.iterations_plot import iterations
from fembench_studies.thesis_004.machines import Machines, emulated, given
from fembench_studies.thesis_004.measure import StudyFolder
from fembench_studies.thesis_004.phase_means import StudyRecords
from fembench_studies.thesis_004.plan import CAMPAIGNS, FINER, FULL, QUICK, TASKS, StudyPlan
from fembench_studies.thesis_004.quantities import ONE_HOST
from fembench_studies.thesis_004.thesis import MESHES, RUNS, printed

PAGE = read_toml(Path(__file__).with_name("page.toml"), dict[str, DeclaredPage])
NAMES = {"MESHES": (1, 2, 3), "ONE_HOST": ONE_HOST, "RUNS": RUNS, "TASKS": TASKS}  # for expressions of PAGE
Shown = tuple[list[Plot], list[Table]]


def measure(request: StudyRequest, attempts: Attempts) -> StudyOutcome:
    """The study, on emulated or real hosts. Raises InputError."""
    plan = StudyPlan(machines_of(request.hosts, request.cores), QUICK if request.quick else FULL)
    study = StudyFolder(request.folder, plan, request.command)
    timers = _timers(request.folder / "timers.json") if request.wants("E1") else {}
    _run_missing(study, request, attempts.tell)
    if plan.machines.emulated:
        attempts.tell(f"SYNTHETIC: {plan.machines.label}")
    for line in study.failed:
        attempts.fail(line)
    for line in study.invalid():
        attempts.tell(f"{line}; the next start repeats this run")
    return outcome(study, timers, request.only)


def outcome(study: StudyFolder, timers: dict[str, Any], only: Sequence[str] = ()) -> StudyOutcome:
    """Results of the experiments in `only`, () means all, from the folder's records."""
    found = StudyRecords(study.records)
    sections = compose(study, found, timers, only)
    records = [r for group in study.records.values() for r in group]
    label = study.plan.machines.label
    paths = {r.id: fields_path(study.path / "sparse", r.id) for r in records}
    return StudyOutcome(
        sections=sections,
        findings=[t for section in (sections if only else sections[:1]) for t in section.tables],
        claims=Gates(study.plan, found).claims(only) if records else [],
        valid=all(r.verdict.status != "INVALID" for r in records),
        synthetic=[label] if label else sorted({r.environment.synthetic for r in records} - {""}),
        records=records,
        failures=[f for where in CAMPAIGNS for f in failures(study.path / where)],
        fields={name: path for name, path in paths.items() if path.is_file()},
    )


def compose(
    study: StudyFolder, found: StudyRecords, timers: dict[str, Any], only: Sequence[str] = ()
) -> list[Section]:
    """Findings, and the sections of the experiments in `only`, () means
    all; empty ones are left out."""
    plan, runs = study.plan, weighted.results(study.plan, found)
    here = found.side(plan)
    sides = Comparison(here, printed(), NAMES)
    sections = [findings(plan, here, runs, note(plan, found), only)]
    for one in study_named("thesis-004").experiments:
        if wanted(one.name, only):
            page, (plots, more) = PAGE.get(one.name, DeclaredPage()), _special(one.name, study, found, timers)
            plots = [*map(sides.figure, page.figures), *plots]
            sections.append(
                Section(f"{one.name} {one.sentence}", plots, [*map(sides.table, page.tables), *more])
            )
    sections += [] if only else [Section("Slips of the thesis", [], [tables.slips()])]
    return [s for s in sections if s.plots or s.tables]


def _special(name: str, study: StudyFolder, found: StudyRecords, timers: dict[str, Any]) -> Shown:
    """What an experiment shows beyond the comparisons that are declared."""
    plan = study.plan
    if name == "E0":
        return [], tables.hosts(plan.machines)
    if name == "E1":
        return tables.timer_plots(timers), tables.timers(timers)
    if name in ("E2", "E12"):
        return _body(name, study, found), [tables.meshes(plan, found)] if name == "E2" else []
    if name == "E5":
        return _time_lines(plan, found), []
    if name == "E6":
        records = [r for mesh in (*MESHES, *FINER) if (r := found.record(plan.sparse(mesh)))]
        plot = iterations(results(records))
        return [plot] if plot else [], [tables.iterations(plan, found)]
    if name == "E13":
        runs = weighted.results(plan, found)
        return [tables.weighted_plot(runs)] if runs else [], [tables.weighted(runs)]
    return [], []


def _body(name: str, study: StudyFolder, found: StudyRecords) -> list[Plot]:
    """The deformed body (E2), or its parts (E12); [] if there is no record."""
    record = found.record(study.plan.parted())
    path = fields_path(study.path / "sparse", record.id) if record else None
    if path is None or not path.is_file():
        return []
    fields = read_fields(path)
    if name == "E2":
        return [body.deformed_picture(fields, "Mesh 3 (Figs 5.7, 5.8)")]
    return [body.parts_picture(fields, "Mesh 3 (Fig. 4.7)")]


def _time_lines(plan: StudyPlan, found: StudyRecords) -> list[Plot]:
    """E5: Mesh 1, two tasks on one host, with two processors and with one."""
    plots, texts = [], captions("thesis_004").figures
    for platform in ("smp", "single_cpu"):
        record, name = found.record(plan.case(platform, 1, 2)), f"time_line-{platform}"
        for plot in gantt.time_lines(results([record])) if record else ():
            said = f"{texts[name].caption} {plot.caption}"
            plots.append(dataclasses.replace(plot, name=name, title=texts[name].title, caption=said))
    return plots


def note(plan: StudyPlan, found: StudyRecords) -> str:
    """The conditions of the measurements, in a few sentences."""
    m, effort = plan.machines, plan.effort
    said = captions("thesis_004").notes
    conditions = said["emulated" if m.emulated else "real"]
    words = [conditions.format(host=m.fast[0].name, speed=m.slow[0].speed, dilate=m.dilate)]
    if any(effort.iterations.values()):
        pairs = ((mesh, k, found.iterations.get(mesh, 0)) for mesh, k in effort.iterations.items())
        timed = ", ".join(f"{mesh} {k} of {all_}" for mesh, k, all_ in pairs)
        words.append(said["quick"].format(timed=timed))
    return " ".join([*words, said["runs"]])


def machines_of(asked: HostsAsked, cores: int) -> Machines:
    """The hosts given, or else emulated ones on `cores` cores. Raises InputError."""
    if not (asked.fast or asked.slow):
        return emulated(cores)
    return given(asked.fast, asked.slow)


class Timekeeper:
    """The time left: the mean time of the finished runs times the number of runs left."""

    def __init__(self, to_do: int) -> None:
        self.to_do, self.done, self._begin = to_do, 0, time.monotonic()

    def one_more(self) -> None:
        self.done += 1

    @property
    def left(self) -> float:
        """Seconds left, once a run is done."""
        return (time.monotonic() - self._begin) / self.done * max(0, self.to_do - self.done)


def _run_missing(study: StudyFolder, request: StudyRequest, tell: Tell) -> None:
    """Run the cases known in advance, then both rounds of E13; report one line per run."""
    wants, rounds = study.plan.wants(request.only), weighted.ROUNDS if request.wants("E13") else ()
    later = len(weighted.KINDS) * len(rounds) * len(MESHES) * study.plan.effort.repetitions
    keeper = Timekeeper(study.missing(wants) + later)

    def ended(done: Done) -> None:
        if done.outcome is None:
            return
        keeper.one_more()
        text = summary_line(done.record) if done.record else f"{done.run.id}: FAILED: {done.outcome.message}"
        place = f" [{done.run.case.output.label}]" if done.run.case.output.label else ""
        tell(f"[{keeper.done}/{keeper.to_do}, {clock(keeper.left)} left]{place} {text}")

    study.measure(wants, ended, only_kept=request.only_kept)
    for round_ in rounds:
        more = weighted.wants(study.plan, StudyRecords(study.records), round_)
        study.measure(more, ended, only_kept=request.only_kept)


def _timers(path: Path) -> dict[str, Any]:
    """The output of `fembench timers`, kept in a file; a separate process, as
    this one must not start MPI."""
    if not path.exists():
        write_atomic(path, fembench.verb("timers", "--json"))
    return read_json(path, dict[str, Any])
