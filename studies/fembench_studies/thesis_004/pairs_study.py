"""Ferreira (2006) repeated: phases of a parallel FEM program on fast and slow hosts, E0 to E14."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fembench.base.config import read_json, read_text
from fembench.base.files import write_atomic
from fembench.base.units import seconds
from fembench.bench.campaign import Done
from fembench.bench.schedule import Timekeeper
from fembench.errors import InputError
from fembench.records.store import failures
from fembench.report.exports import fields_path
from fembench.report.runs import summary_line
from fembench_studies.attempts import Attempts, Tell, output_of
from fembench_studies.study import HostsAsked, StudyOutcome, StudyRequest
from fembench_studies.thesis_004 import weighted as e13
from fembench_studies.thesis_004.gates import claims
from fembench_studies.thesis_004.machines import SLOW_SPEED, Machines, emulated, given, hosts_in
from fembench_studies.thesis_004.measure import StudyFolder
from fembench_studies.thesis_004.pairs_sections import EVERY_RUN, compose
from fembench_studies.thesis_004.phase_means import StudyRecords
from fembench_studies.thesis_004.plan import CAMPAIGNS, FULL, QUICK, StudyPlan


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
    asked = [s for s in sections if s.title != EVERY_RUN] if only else sections[:1]
    return StudyOutcome(
        sections=sections,
        findings=[t for section in asked for t in section.tables],
        claims=claims(study.plan, found, only) if records else [],
        valid=all(r.verdict.status != "INVALID" for r in records),
        synthetic=[label] if label else sorted({r.environment.synthetic for r in records} - {""}),
        records=records,
        failures=[f for where in CAMPAIGNS for f in failures(study.path / where)],
        fields={name: path for name, path in paths.items() if path.is_file()},
    )


def machines_of(asked: HostsAsked, cores: int) -> Machines:
    """The hosts given, or else emulated ones on `cores` cores. Raises InputError."""
    fast = list(asked.fast)
    if asked.hostfile:
        names = {host.split(":")[0] for host in asked.slow}
        listed = hosts_in(read_text(asked.hostfile), asked.hostfile)
        fast = fast or [host for host in listed if host.split(":")[0] not in names]
    if not (fast or asked.slow):
        return emulated(cores, asked.slow_speed or SLOW_SPEED)
    if asked.slow_speed:
        raise InputError(
            "--slow-speed with --fast, --slow or --hostfile: expected only for emulated hosts and labs"
        )
    return given(fast, asked.slow)


def _run_missing(study: StudyFolder, request: StudyRequest, tell: Tell) -> None:
    """Run the cases known in advance, then both rounds of E13; report one line per run."""
    wants, rounds = study.plan.wants(request.only), e13.ROUNDS if request.wants("E13") else ()
    later = len(e13.KINDS) * len(rounds) * 3 * study.plan.effort.repetitions
    clock = Timekeeper(study.missing(wants) + later)

    def ended(done: Done) -> None:
        if done.outcome is None:
            return
        clock.one_more()
        text = summary_line(done.record) if done.record else f"{done.run.id}: FAILED: {done.outcome.message}"
        place = f" [{done.run.case.output.label}]" if done.run.case.output.label else ""
        tell(f"[{clock.done}/{clock.to_do}, {seconds(max(clock.left or 0.0, 0.0))} left]{place} {text}")

    study.measure(wants, ended, only_kept=request.only_kept)
    for round_ in rounds:
        more = e13.wants(study.plan, StudyRecords(study.records), round_)
        study.measure(more, ended, only_kept=request.only_kept)


def _timers(path: Path) -> dict[str, Any]:
    """The output of `fembench timers`, kept in a file; a separate process, as this one must not start MPI."""
    if not path.exists():
        write_atomic(path, output_of("timers", "--json"))
    return read_json(path, dict[str, Any])
