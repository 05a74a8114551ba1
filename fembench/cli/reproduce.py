"""Reproduce a study: its experiments on the hosts at hand, its tables and plots with both numbers.

thesis-000: R. H. Herai, analytic prediction with intervals (Campinas, 2005); its applications on a virtual
park of 32 machines, and farm programs under MPI on emulated machines (SYNTHETIC).
thesis-001: H. de A. Mendes, HLogP (Niteroi, 2004); its rings, fork, join and schedules on emulated hosts with
its own Os, L and Or (SYNTHETIC), and what messages cost here.
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
  fembench reproduce thesis-004 --fast a:2,b:2 --slow c     on real hosts: two cores of a and b, one of c
  fembench reproduce thesis-004 --lab                       in a lab of one fast and one slow host (root)
"""

import argparse
from pathlib import Path

STUDIES = ("thesis-000", "thesis-001", "thesis-002", "thesis-003", "thesis-004")
LAB = """name = "thesis-004"
[[hosts]]
name = "node8"
cpus = [{first}, {second}]
speed = 0.9
slots = 8
[[hosts]]
name = "node00"
cpus = [{second}]
speed = {slow:g}
slots = 8
"""


def arguments(parser: argparse.ArgumentParser) -> None:
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
        type=float,
        default=0.0,
        metavar="S",
        help="emulated, lab: speed of a slow processor relative to a fast one (default: 0.13, 1 : 7.7)",
    )
    parser.add_argument("--page", action="store_true", help="measure nothing; make the page of what there is")


def run(options: argparse.Namespace) -> int:
    from fembench.cli.shared import progress, typed_command
    from fembench.reproduce.measure import Study
    from fembench.reproduce.page import build, load_timers
    from fembench.reproduce.plan import FULL, QUICK, Plan

    if options.study == "thesis-000":
        return _farms(options)
    if options.study == "thesis-003":
        return _slaves(options)
    if options.study == "thesis-001":
        return _grid(options)
    if options.study == "thesis-002":
        return _programs(options)
    if options.lab:
        return _in_lab(options)
    plan = Plan(_machines(options), QUICK if options.quick else FULL)
    folder = Path(options.results or f"results/{options.study}{'-quick' if options.quick else ''}")
    study = Study(folder, plan, typed_command())
    timers = _timers(folder / "timers.json")
    _measure(study, options.page)
    if plan.machines.emulated:
        progress(f"SYNTHETIC: {plan.machines.label}")
    for line in study.failed:
        progress(f"FAILED: {line}")
    page = build(study, load_timers(timers))
    print(_terminal(page))
    print(f"records: {folder}\nreport:  {page}")
    invalid = sum(r.verdict.status == "INVALID" for group in study.records.values() for r in group)
    return 1 if study.failed or invalid else 0


def _farms(options: argparse.Namespace) -> int:
    """thesis-000: its applications on a virtual park, and under MPI. Raises InputError."""
    from fembench.cli.shared import progress
    from fembench.reproduce import farm_live, farm_study
    from fembench.reproduce.measure import cores_here

    folder = _emulated_only(options)
    effort = farm_live.QUICK if options.quick else farm_live.FULL
    live = farm_live.measure(folder, effort, cores_here(), progress, only_kept=options.page)
    progress("virtual park: seven predictions of every version, 2 to 32 machines")
    results = farm_study.virtual()
    page = farm_study.build(folder, results, live)
    print(f"{farm_study.terminal(results, live)}\nrecords: {folder}\nreport:  {page}")
    return 1 if any(one.record.error > 1 for one in live) else 0


def _programs(options: argparse.Namespace) -> int:
    """thesis-002: its programs on emulated machines. Raises InputError."""
    from fembench.base.errors import InputError
    from fembench.cli.shared import progress
    from fembench.reproduce import bsp_study
    from fembench.reproduce.bsp_plan import FULL, QUICK
    from fembench.reproduce.measure import cores_here

    folder = _emulated_only(options)
    effort = QUICK if options.quick else FULL
    found = bsp_study.measure(folder, effort, cores_here(), progress, only_kept=options.page)
    if not found:
        raise InputError(f"{folder}: nothing measured yet; leave --page out")
    page = bsp_study.build(folder, found)
    print(f"{bsp_study.terminal(found)}\nrecords: {folder}\nreport:  {page}")
    wrong = [s for s, times in found.items() if not all(c.agrees for c in times.cells)]
    return 1 if wrong else 0


def _grid(options: argparse.Namespace) -> int:
    """thesis-001: its applications on emulated hosts. Raises InputError."""
    from fembench.base.errors import InputError, RunFailedError
    from fembench.cli.shared import progress
    from fembench.reproduce import grid_live, grid_messages, grid_study
    from fembench.reproduce.measure import cores_here

    folder = _emulated_only(options)
    effort = grid_live.QUICK if options.quick else grid_live.FULL
    found = grid_live.measure(folder, effort, cores_here(), progress, only_kept=options.page)
    if not found:
        raise InputError(f"{folder}: nothing measured yet; leave --page out")
    progress("messages between two ranks: about a minute")
    try:
        network = grid_messages.measure_network(folder, only_kept=options.page)
    except RunFailedError as error:
        progress(f"FAILED: {error}")
        network = None
    page = grid_study.build(folder, found, network)
    print(f"{grid_study.terminal(found)}\n\nrecords: {folder}\nreport:  {page}")
    return 1 if any(one.record.error > 1 for one in found) else 0


def _slaves(options: argparse.Namespace) -> int:
    """thesis-003: its programs on emulated machines. Raises InputError."""
    from fembench.base.errors import InputError
    from fembench.cli.shared import progress
    from fembench.reproduce import slaves_live, slaves_study
    from fembench.reproduce.measure import cores_here

    folder = _emulated_only(options)
    effort = slaves_live.QUICK if options.quick else slaves_live.FULL
    found = slaves_live.measure(folder, effort, cores_here(), progress, only_kept=options.page)
    if not found:
        raise InputError(f"{folder}: nothing measured yet; leave --page out")
    page = slaves_study.build(folder, found)
    print(f"{slaves_study.terminal(found)}\nrecords: {folder}\nreport:  {page}")
    return 1 if any(one.record.error > 1 for one in found) else 0


def _emulated_only(options: argparse.Namespace) -> Path:
    """The folder of a study whose machines are emulated. Raises InputError where hosts are given."""
    from fembench.base.errors import InputError

    if options.fast or options.slow or options.hostfile or options.lab or options.slow_speed:
        raise InputError(
            f"{options.study} runs on emulated machines: expected no hosts, no --lab, no --slow-speed"
        )
    return Path(options.results or f"results/{options.study}{'-quick' if options.quick else ''}")


def _machines(options: argparse.Namespace):
    """The hosts given, or emulated ones. Raises InputError."""
    from fembench.base.config import read_text
    from fembench.base.errors import InputError
    from fembench.reproduce.machines import SLOW_SPEED, emulated, given, hosts_in
    from fembench.reproduce.measure import cores_here

    slow = [h for h in options.slow.split(",") if h]
    fast = [h for h in options.fast.split(",") if h]
    if options.hostfile:
        names = {h.split(":")[0] for h in slow}
        fast = fast or [h for h in hosts_in(read_text(options.hostfile)) if h.split(":")[0] not in names]
    if not (fast or slow):
        return emulated(cores_here(), options.slow_speed or SLOW_SPEED)
    if options.slow_speed:
        raise InputError("--slow-speed with hosts: it is for emulated ones and labs")
    return given(fast, slow)


def _measure(study, only_page: bool) -> None:
    """Everything known beforehand, then both rounds of E13; a line a run."""
    from fembench.base.units import seconds
    from fembench.bench.campaign import Timekeeper
    from fembench.cli.shared import progress
    from fembench.report.summary import summary_line
    from fembench.reproduce import weighted
    from fembench.reproduce.times import Measured

    wants = study.plan.wants()
    later = len(weighted.KINDS) * len(weighted.ROUNDS) * 3 * study.plan.effort.repetitions
    clock = Timekeeper(study.missing(wants) + later)

    def ended(done) -> None:
        if done.outcome is None:
            return
        clock.one_more()
        text = summary_line(done.record) if done.record else f"{done.run.id}: FAILED: {done.outcome.message}"
        place = f" [{done.run.case.label}]" if done.run.case.label else ""
        progress(f"[{clock.done}/{clock.to_do}, {seconds(max(clock.left or 0.0, 0.0))} left]{place} {text}")

    study.measure(wants, ended, only_kept=only_page)
    for round_ in weighted.ROUNDS:
        study.measure(weighted.wants(study.plan, Measured(study.records), round_), ended, only_kept=only_page)


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


def _terminal(page: Path) -> str:
    """The findings, from the Markdown page."""
    text = (page.parent / "report.md").read_text(encoding="utf-8")
    start = text.index("## Findings")
    return text[start : text.index("\n## ", start + 1)]


def _in_lab(options: argparse.Namespace) -> int:
    """The same command inside a lab, which is gone afterwards. Raises InputError."""
    import subprocess
    import sys
    import tempfile

    from fembench.base.errors import InputError
    from fembench.machine import lab, lab_groups
    from fembench.reproduce.machines import SLOW_SPEED

    if options.fast or options.slow or options.hostfile:
        raise InputError("--lab with hosts: expected one of them")
    lab.require_root()
    cpus = lab_groups.usable_cpus(lab_groups.hierarchies())
    if len(cpus) < 2:
        raise InputError(f"--lab: {len(cpus)} usable CPU; expected two")
    text = LAB.format(first=cpus[0], second=cpus[1], slow=0.9 * (options.slow_speed or SLOW_SPEED))
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "lab.toml")
        path.write_text(text)
        state = lab.up(path)
    results = options.results or f"results/{options.study}-lab{'-quick' if options.quick else ''}"
    inner = ["reproduce", options.study, "--fast", "node8:2", "--slow", "node00:1", "--results", results]
    inner += ["--quick"] if options.quick else []
    inner += ["--page"] if options.page else []
    me = [sys.executable, "-m", "fembench"]
    try:
        return subprocess.run([*me, "lab", "run", "--name", state.cluster.name, *me, *inner]).returncode
    finally:
        lab.down(state.cluster.name)
