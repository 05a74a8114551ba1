"""Run one case and verify it.

Starts the case under MPI, prints the time of each phase and the verdict, and writes one record (JSON) into
the results folder. Options after `--` go to PETSc.

Examples:
  fembench run m1 --ranks 2
  fembench run l --ranks 4 --shares 7:1:1:1 --iterations 100
  fembench run m --ranks 2 --solver petsc --precond gamg -- -ksp_monitor
  fembench run part.msh --problem bracket.toml --precond jacobi --tolerance-kind relative
"""

import argparse
import sys
from pathlib import Path

MANY_PER_CORE = 8  # ranks; with more, a note says that starting them takes long


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import case_options, job_options

    parser.add_argument("--results", default="results/single", metavar="DIR", help="folder for the record")
    parser.add_argument(
        "--weights", metavar="FILE", help="take the shares from this file, written by tune or weights"
    )
    parser.add_argument(
        "--reference",
        metavar="RECORD",
        help="one-rank record of the same mesh, problem and work, to compare energy and solution with "
        "(default: the newest in the results folder)",
    )
    job_options(parser, timeout=0.0)
    parser.add_argument("--json", action="store_true", help="print the record as JSON instead of tables")
    case_options(parser)


def run(options: argparse.Namespace) -> int:
    from fembench.base.config import json_text
    from fembench.base.units import plural
    from fembench.bench.campaign_file import run_id
    from fembench.bench.campaign_folder import failure_of
    from fembench.bench.campaign_hosts import campaign_hosts
    from fembench.bench.enough_memory import check_memory
    from fembench.bench.one_rank_reference import held_against, reference_beside
    from fembench.cli.progress import progress, working
    from fembench.cli.shared import case_from, typed_command, warn_if_stale, weighted
    from fembench.launch.case_job import launch
    from fembench.launch.job_line import MOST_PER_CORE, ranks_per_core
    from fembench.launch.run_job import REVOKED
    from fembench.launch.scratch import occupied, reserved
    from fembench.records.store import save
    from fembench.report.tables import terminal
    from fembench.weights.disturbed import disturbance

    case = weighted(case_from(options), options.weights)
    folder = Path(options.results) / "runs"
    each = ranks_per_core(case.placement.ranks, options.hostfile)
    if MANY_PER_CORE < each <= MOST_PER_CORE:
        turns = f"{each} ranks per core take turns (OVERSUBSCRIBED: functional only)"
        progress(
            f"{plural(case.placement.ranks, 'rank')} on this machine: {turns}; starting them may take minutes"
        )
    check_memory(case, campaign_hosts(options.hostfile))
    stem = run_id(case, 1).rsplit("-r", 1)[0]
    doing = working(f"run: {case.question.mesh} on {plural(case.placement.ranks, 'rank')}")
    with occupied(folder, shared=True), reserved(folder, stem) as id, doing:
        outcome = launch(
            case,
            id=id,
            command=typed_command(),
            scratch=folder,
            hostfile=options.hostfile,
            timeout=options.timeout,
            reference=(
                held_against(case, options.reference) if options.reference else reference_beside(case, folder)
            ),
            fields_path=(folder / f"{id}.fields.npz").resolve() if case.output.fields else None,
        )
        if outcome.record is not None:
            path = save(outcome.record, folder)
        elif outcome.kind not in ("input", REVOKED):
            save(failure_of(id, case, outcome), folder)
    if outcome.record is None:
        if outcome.kind == "crashed":  # by an exception, for example
            print(outcome.output, file=sys.stderr)
        print(f"fembench: {outcome.message}", file=sys.stderr)
        return 2 if outcome.kind == "input" else 1
    warn_if_stale(options.weights, outcome.record)
    disturbed = disturbance([outcome.record.environment], "times")
    if options.json:
        print(json_text(outcome.record))
        if disturbed:
            progress(f"run: {disturbed}")
    else:
        print(f"{disturbed}\n\n" if disturbed else "", end="")
        print(terminal([outcome.record]))
        print(f"record: {path}")
    return 1 if outcome.record.verdict.status == "INVALID" else 0
