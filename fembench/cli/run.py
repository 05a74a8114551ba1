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
    from fembench.base.progress import progress
    from fembench.cli.shared import case_from, typed_command
    from fembench.launch.job import REFUSED
    from fembench.report.tables import terminal
    from fembench.weights.stale import disturbance
    from fembench.workflows.run import run_case

    done = run_case(
        case_from(options),
        results=options.results,
        weights=options.weights,
        reference=options.reference,
        hostfile=options.hostfile,
        timeout=options.timeout,
        command=typed_command(),
    )
    record = done.job.record
    if record is None:
        if done.job.kind == "crashed":  # by an exception, for example
            print(done.job.output, file=sys.stderr)
        print(f"fembench: {done.job.message}", file=sys.stderr)
        return 2 if done.job.kind in REFUSED else 1
    disturbed = disturbance([record.environment], "times")
    if options.json:
        print(json_text(record))
        if disturbed:
            progress(f"run: {disturbed}")
    else:
        print(f"{disturbed}\n\n" if disturbed else "", end="")
        print(terminal([record]))
        print(f"record: {done.path}")
    return 1 if record.verdict.status == "INVALID" else 0
