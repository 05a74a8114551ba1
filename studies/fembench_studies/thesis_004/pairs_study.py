"""Ferreira (2006) repeated: phases of a parallel FEM program on fast and slow hosts, E0 to E14."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fembench.base.config import read_json, read_text
from fembench.base.errors import InputError
from fembench.base.files import write_atomic
from fembench.base.units import seconds
from fembench.bench.campaign import Done
from fembench.bench.schedule import Timekeeper
from fembench.records.store import failures
from fembench.report.exports import fields_path
from fembench.report.runs import summary_line
from fembench_studies.attempts import Attempts, Tell, output_of
from fembench_studies.study import HostsAsked, Study, StudyExperiment, StudyOutcome, StudyRequest
from fembench_studies.thesis_004 import weighted as e13
from fembench_studies.thesis_004.gates import claims
from fembench_studies.thesis_004.machines import SLOW_SPEED, Machines, emulated, given, hosts_in
from fembench_studies.thesis_004.measure import StudyFolder
from fembench_studies.thesis_004.pairs_sections import EVERY_RUN, compose
from fembench_studies.thesis_004.phase_means import StudyRecords
from fembench_studies.thesis_004.plan import CAMPAIGNS, FULL, QUICK, StudyPlan

EXPERIMENTS = (
    StudyExperiment("E0", "hosts (Tables 5.1, 5.4)", "tables of our hosts and of the source's"),
    StudyExperiment("E1", "cost of reading a timer (Tables 5.2, 5.3)", "ticks per call, best and worst"),
    StudyExperiment("E2", "sizes and pictures of the meshes (Table 5.5)", "equations, and the deformed body"),
    StudyExperiment(
        "E3",
        "phases with one task per host (Tables 5.6 to 5.11)",
        "speedup and efficiency of CG and assembly",
    ),
    StudyExperiment(
        "E4",
        "phases with all tasks on one host, on two cores and on one (Tables 5.12 to 5.17)",
        "the gain from a second core, and the cost of sharing one core",
    ),
    StudyExperiment(
        "E5", "time lines of two tasks on two cores and on one (Figs 5.20, 5.21)", "when each task waits"
    ),
    StudyExperiment("E6", "iterations against equations (Fig. 5.22)", "the curve, continued to finer meshes"),
    StudyExperiment(
        "E7",
        "communication inside CG (Tables 5.18 to 5.23)",
        "the share of communication, which grows with the number of tasks",
    ),
    StudyExperiment(
        "E8", "send and receive inside one host (Table 5.24)", "receive includes waiting for the partner"
    ),
    StudyExperiment(
        "E9",
        "totals of a fast and a slow host alone, and their ratio (Tables 5.25, 5.26)",
        "the ratio that sets the shares of E13",
    ),
    StudyExperiment(
        "E10",
        "runs 1 to 11 on a fast and a slow host together (Table 5.27)",
        "whether any run beats node8 alone",
    ),
    StudyExperiment(
        "E11",
        "pairs of hosts: fast, mixed, slow (Tables 5.28 to 5.30)",
        "a mixed pair is as slow as two slow hosts",
    ),
    StudyExperiment("E12", "the parts of Mesh 3 (Tables 5.31 to 5.33)", "equations per part, and interfaces"),
    StudyExperiment(
        "E13",
        "weighted parts on a fast and a slow host (the source's future work)",
        "the gain over the best of runs 1 to 11, and the ideal split",
    ),
    StudyExperiment(
        "E14",
        "dense and sparse storage: why the speedups are super-linear",
        "speedup of dense storage on one core, where nothing runs in parallel",
    ),
)


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


STUDY = Study(
    name="thesis-004",
    title="Ferreira (2006) measured again",
    source="R. R. Ferreira, performance of a parallel FEM program on unequal PCs (Brasilia, 2006)",
    did=(
        "A parallel program for 3-D elasticity ran on two clusters of PCs, one seven times as fast as the "
        "other. It solved three meshes by conjugate gradients with a dense matrix per task, and timed every "
        "phase."
    ),
    again=(
        "The same phases of fembench's own solver, on meshes with about as many equations. By default hosts "
        "are emulated (SYNTHETIC; no root needed). With --fast and --slow every run is on those hosts, its "
        "tasks confined to the first CORES cores of their host (E2, E4, E5, E6, E8, E12: the first fast "
        "host); E1 measures the launching machine. --lab builds a lab of a fast and a slow host (root)."
    ),
    takes="about 12 minutes on two cores with --quick; many hours without it (all solves to the tolerance)",
    look="Findings: statements of the source, with its numbers and ours. E10, E13: does the slow host help?",
    experiments=EXPERIMENTS,
    measure=measure,
    folders=(".",),  # each campaign locks its own folder
)
