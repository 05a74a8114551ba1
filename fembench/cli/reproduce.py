"""Reproduce a study: its experiments on the hosts at hand, its tables and plots with both numbers.

thesis-000: R. H. Herai, analytic prediction with intervals (Campinas, 2005); its applications on a virtual
park of 32 machines, and farm programs under MPI on emulated machines (SYNTHETIC).
thesis-001: H. de A. Mendes, HLogP (Niteroi, 2004); rings, fork and join with real messages, predicted from
the network measured here; its schedules on emulated hosts with its own Os, L and Or (SYNTHETIC).
thesis-002: R. de Q. Gomes, MigBSP++, balancing of programs in phases (Sao Leopoldo, 2014); its two programs
and Tables 12 to 15 on seven emulated machines (SYNTHETIC).
thesis-003: E. P. Calzeta and T. A. D. de Souza, simulation of the execution graph (Sao Jose do Rio Preto,
2008); its integral and its matrix product on emulated machines (SYNTHETIC), Tables 4.1 to 4.5.
thesis-004: R. R. Ferreira, performance of a parallel FEM program on unequal PCs (Brasilia, 2006); experiments
E0 to E14. Without hosts they are emulated (SYNTHETIC; no root needed). With hosts every run is on them, its
tasks confined to the first CORES cores of their host (E2, E4, E5, E6, E8, E12: the first fast host); only the
timers of E1 are those of the launching machine. Stop it whenever you like: the same command resumes where it
stopped. Examples:
  fembench reproduce thesis-004 --quick                     about twelve minutes on two cores
  fembench reproduce thesis-004                             every run to the tolerance; many hours
  fembench reproduce thesis-000 --quick                     about three minutes
  fembench reproduce thesis-001 --quick                     about five minutes
  fembench reproduce thesis-002 --quick                     six scenarios, about six minutes
  fembench reproduce thesis-003 --quick                     about two minutes
  fembench reproduce thesis-004 --quick --only E7,E9        two of its experiments; --list names them
  fembench reproduce thesis-004 --fast a:2,b:2 --slow c     on real hosts: two cores of a and b, one of c
  fembench reproduce thesis-004 --lab                       in a lab of one fast and one slow host (root)
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

STUDIES = ("thesis-000", "thesis-001", "thesis-002", "thesis-003", "thesis-004")


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import real

    parser.add_argument("study", choices=STUDIES, metavar="STUDY", help=", ".join(STUDIES))
    parser.add_argument(
        "--quick", action="store_true", help="fewer sets and iterations, all tables and plots"
    )
    parser.add_argument(
        "--results", metavar="DIR", help="where everything goes (default: results/STUDY[-quick])"
    )
    parser.add_argument(
        "--fast", default="", metavar="HOST[:CORES],…", help="fast hosts, all alike; two cores each"
    )
    parser.add_argument(
        "--slow", default="", metavar="HOST[:CORES],…", help="slow hosts, all alike; one core each"
    )
    parser.add_argument(
        "--hostfile",
        metavar="FILE",
        help="hosts from an MPI host file; --slow names the slow ones among them",
    )
    parser.add_argument("--lab", action="store_true", help="build a lab of two hosts and run in it (root)")
    parser.add_argument(
        "--slow-speed",
        type=real(0, 1),
        default=0.0,
        metavar="S",
        help="emulated, lab: speed of a slow processor relative to a fast one (default: 0.13, 1 : 7.7)",
    )
    parser.add_argument(
        "--only", default="", metavar="NAME,…", help="these experiments alone, and a page of them"
    )
    parser.add_argument("--list", action="store_true", help="list the experiments of the study, and end")
    parser.add_argument("--page", action="store_true", help="measure nothing; make the page of what there is")


def run(options: argparse.Namespace) -> int:
    import contextlib

    from fembench.launch.scratch import occupied
    from fembench.studies.experiments import chosen, listing

    if options.list:
        print(listing(options.study))
        return 0
    only = chosen(options.study, options.only)
    studies = {"thesis-000": _farms, "thesis-001": _grid, "thesis-002": _programs, "thesis-003": _slaves}
    with contextlib.ExitStack() as held:
        for folder in [] if options.page or options.lab else _written(options):
            held.enter_context(occupied(folder))
        return studies.get(options.study, _pairs)(options, only)


def _written(options: argparse.Namespace) -> list[Path]:
    """Folders that nobody else may write into meanwhile; thesis-004 takes those of its campaigns itself."""
    if options.study == "thesis-004":
        return [_folder(options)]
    folder = _emulated_only(options)
    return [folder, folder / "runs"]


def _folder(options: argparse.Namespace) -> Path:
    return Path(options.results or f"results/{options.study}{'-quick' if options.quick else ''}")


def _pairs(options: argparse.Namespace, only: Sequence[str]) -> int:
    """thesis-004: its experiments on emulated or given hosts. Raises InputError."""
    from fembench.cli.shared import progress, typed_command
    from fembench.studies.experiments import wanted
    from fembench.studies.page import build, load_timers
    from fembench.studies.thesis_004.measure import StudyFolder
    from fembench.studies.thesis_004.plan import FULL, QUICK, StudyPlan

    if options.lab:
        return _in_lab(options)
    plan = StudyPlan(_machines(options), QUICK if options.quick else FULL)
    folder = _folder(options)
    study = StudyFolder(folder, plan, typed_command())
    timers = load_timers(_timers(folder / "timers.json")) if wanted("E1", only) else {}
    _measure(study, options.page, only)
    if plan.machines.emulated:
        progress(f"SYNTHETIC: {plan.machines.label}")
    for line in study.failed:
        progress(f"FAILED: {line}")
    page = build(study, timers, only)
    print(_terminal(page, only))
    print(f"records: {folder}\nreport:  {page}")
    invalid = sum(r.verdict.status == "INVALID" for group in study.records.values() for r in group)
    return 1 if study.failed or invalid else 0


def _farms(options: argparse.Namespace, only: Sequence[str]) -> int:
    """thesis-000: its applications on a virtual park, and under MPI. Raises InputError."""
    from fembench.cli.shared import progress
    from fembench.studies.thesis_000 import farm_live, farm_study
    from fembench.studies.thesis_004.measure import cores_here

    folder = _emulated_only(options)
    effort = farm_live.QUICK if options.quick else farm_live.FULL
    live = farm_live.measure(folder, effort, cores_here(), progress, only_kept=options.page, only=only)
    progress("virtual park: seven predictions of every version, 2 to 32 machines")
    results = farm_study.virtual(only)
    page = farm_study.build(folder, results, live, only)
    print(f"{farm_study.terminal(results, live)}\nrecords: {folder}\nreport:  {page}")
    return 1 if any(one.record.error > 1 for one in live) else 0


def _programs(options: argparse.Namespace, only: Sequence[str]) -> int:
    """thesis-002: its programs on emulated machines. Raises InputError."""
    from fembench.cli.shared import progress
    from fembench.studies.thesis_002 import bsp_study
    from fembench.studies.thesis_002.bsp_plan import FULL, QUICK
    from fembench.studies.thesis_004.measure import cores_here

    folder = _emulated_only(options)
    effort = QUICK if options.quick else FULL
    found = bsp_study.measure(folder, effort, cores_here(), progress, only_kept=options.page, only=only)
    _require(found, folder)
    page = bsp_study.build(folder, found, only)
    print(f"{bsp_study.terminal(found)}\nrecords: {folder}\nreport:  {page}")
    wrong = [s for s, times in found.items() if not all(c.agrees for c in times.cells)]
    return 1 if wrong else 0


def _grid(options: argparse.Namespace, only: Sequence[str]) -> int:
    """thesis-001: real messages here, and its applications on emulated hosts. Raises InputError."""
    from fembench.base.errors import RunFailedError
    from fembench.cli.shared import progress
    from fembench.studies.thesis_001 import grid_live, grid_messages, grid_real, grid_study
    from fembench.studies.thesis_004.measure import cores_here

    folder = _emulated_only(options)
    effort, kept = (grid_live.QUICK if options.quick else grid_live.FULL), options.page
    profile, real = None, []
    try:
        if not only or {"ring", "fork", "join", "messages"} & set(only):
            progress("messages between the ranks here: about a minute")
            profile = grid_messages.measure_network(folder, cores_here(), only_kept=kept)
        if profile:
            real = grid_real.measure(folder, profile, progress, effort.real, only_kept=kept, only=only)
    except RunFailedError as error:
        progress(f"FAILED: {error}")
    found = grid_live.measure(folder, effort, cores_here(), progress, only_kept=kept, only=only)
    network = profile.network if profile else None
    _require(found or real or network or "slowness" in only, folder)
    sections = grid_study.compose(found, real, network, only)
    page = grid_study.build(folder, found, sections, only)
    print(f"{grid_study.terminal(sections)}\n\nrecords: {folder}\nreport:  {page}")
    return 1 if any(one.record.error > 1 for one in found) or any(f.scores[0].reason for f in real) else 0


def _slaves(options: argparse.Namespace, only: Sequence[str]) -> int:
    """thesis-003: its programs on emulated machines. Raises InputError."""
    from fembench.cli.shared import progress
    from fembench.studies.thesis_003 import slaves_live, slaves_study
    from fembench.studies.thesis_004.measure import cores_here

    folder = _emulated_only(options)
    effort = slaves_live.QUICK if options.quick else slaves_live.FULL
    found = slaves_live.measure(folder, effort, cores_here(), progress, only_kept=options.page, only=only)
    _require(found, folder)
    page = slaves_study.build(folder, found, only)
    print(f"{slaves_study.terminal(found)}\nrecords: {folder}\nreport:  {page}")
    return 1 if any(one.record.error > 1 for one in found) else 0


def _require(found: object, folder: Path) -> None:
    """Raises InputError where there is nothing to make a page of."""
    from fembench.base.errors import InputError

    if not found:
        raise InputError(f"{folder}: nothing measured yet; leave --page out")


def _emulated_only(options: argparse.Namespace) -> Path:
    """The folder of a study whose machines are emulated. Raises InputError where hosts are given."""
    from fembench.base.errors import InputError

    if options.fast or options.slow or options.hostfile or options.lab or options.slow_speed:
        raise InputError(
            f"{options.study} runs on emulated machines: expected no hosts, no --lab, no --slow-speed"
        )
    return _folder(options)


def _machines(options: argparse.Namespace):
    """The hosts given, or emulated ones. Raises InputError."""
    from fembench.base.config import read_text
    from fembench.base.errors import InputError
    from fembench.studies.thesis_004.machines import SLOW_SPEED, emulated, given, hosts_in
    from fembench.studies.thesis_004.measure import cores_here

    slow = [h for h in options.slow.split(",") if h]
    fast = [h for h in options.fast.split(",") if h]
    if options.hostfile:
        names = {h.split(":")[0] for h in slow}
        file = options.hostfile
        fast = fast or [h for h in hosts_in(read_text(file), file) if h.split(":")[0] not in names]
    if not (fast or slow):
        return emulated(cores_here(), options.slow_speed or SLOW_SPEED)
    if options.slow_speed:
        raise InputError("--slow-speed with hosts: it is for emulated ones and labs")
    return given(fast, slow)


def _measure(study, only_page: bool, only: Sequence[str]) -> None:
    """Everything known beforehand, then both rounds of E13; a line per run."""
    from fembench.base.units import seconds
    from fembench.bench.campaign import Timekeeper
    from fembench.cli.shared import progress
    from fembench.report.run_line import summary_line
    from fembench.studies.experiments import wanted
    from fembench.studies.thesis_004 import weighted
    from fembench.studies.thesis_004.phase_means import StudyRecords

    wants, rounds = study.plan.wants(only), weighted.ROUNDS if wanted("E13", only) else ()
    later = len(weighted.KINDS) * len(rounds) * 3 * study.plan.effort.repetitions
    clock = Timekeeper(study.missing(wants) + later)

    def ended(done) -> None:
        if done.outcome is None:
            return
        clock.one_more()
        text = summary_line(done.record) if done.record else f"{done.run.id}: FAILED: {done.outcome.message}"
        place = f" [{done.run.case.label}]" if done.run.case.label else ""
        progress(f"[{clock.done}/{clock.to_do}, {seconds(max(clock.left or 0.0, 0.0))} left]{place} {text}")

    study.measure(wants, ended, only_kept=only_page)
    for round_ in rounds:
        study.measure(
            weighted.wants(study.plan, StudyRecords(study.records), round_), ended, only_kept=only_page
        )


def _timers(path: Path) -> Path:
    """The experiment with timers, once, in a process of its own: MPI is not wanted in this one."""
    import subprocess
    import sys

    from fembench.base.errors import RunFailedError
    from fembench.base.files import write_atomic

    if not path.exists():
        line = [sys.executable, "-m", "fembench", "timers", "--json"]
        done = subprocess.run(line, capture_output=True, text=True)
        if done.returncode:
            raise RunFailedError(f"fembench timers: {done.stderr.strip().splitlines()[-1:]}")
        write_atomic(path, done.stdout)
    return path


def _terminal(page: Path, only: Sequence[str]) -> str:
    """The findings, and the sections of the experiments that were asked for, from the Markdown page."""
    text = (page.parent / "report.md").read_text(encoding="utf-8")
    start = text.index("## Findings")
    return text[start : text.index("\n## Every run" if only else "\n## ", start + 1)]


def _in_lab(options: argparse.Namespace) -> int:
    """The same command inside a lab, which is gone afterwards. Raises InputError."""
    from fembench.base.errors import InputError
    from fembench.studies.thesis_004.in_lab import run
    from fembench.studies.thesis_004.machines import SLOW_SPEED

    if options.fast or options.slow or options.hostfile:
        raise InputError("--lab with hosts: expected one of them")
    results = options.results or f"results/{options.study}-lab{'-quick' if options.quick else ''}"
    more = ["--quick"] if options.quick else []
    more += ["--page"] if options.page else []
    more += ["--only", options.only] if options.only else []
    return run([options.study, "--results", results, *more], options.slow_speed or SLOW_SPEED)
