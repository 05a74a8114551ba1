"""Run one case and verify it.

Starts the case under MPI, prints the time of each phase and the verdict, and writes one
record (JSON) into the results folder. Options after `--` go to PETSc.

Examples:
  fembench run m1 --ranks 2
  fembench run l --ranks 4 --shares 7:1:1:1 --iterations 100
  fembench run m --ranks 2 --solver petsc --precond gamg -- -ksp_monitor
  fembench run part.msh --problem bracket.toml --precond jacobi --tolerance-kind relative
"""

import argparse

from fembench.base.config import json_text
from fembench.base.progress import progress
from fembench.cli.options import call, declare, typed_command
from fembench.cli.shared import JOB, case_from, case_options

OPTIONS = f"""
--results DIR = results/single: folder for the record
--weights FILE: take the shares from this file, written by tune or weights
--reference RECORD: one-rank record of the same mesh, problem and work, to compare
    energy and solution with (default: the newest in the results folder)
{JOB}--json: print the record as JSON instead of tables
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    declare(parser, OPTIONS)
    case_options(parser)


def run(options: argparse.Namespace) -> int:
    from fembench.report.tables import every_table, selected
    from fembench.workflows import run as workflow

    found = call(workflow.run, options, mesh=case_from(options), command=typed_command(), tell=progress)
    if options.json:
        print(json_text(found[0]))
        if found.disturbed:
            progress(f"run: {found.disturbed}")
    else:
        print(f"{found.disturbed}\n\n" if found.disturbed else "", end="")
        print(selected(every_table(found.records)))
        print(f"record: {found.source}; next: fembench report {options.results}")
    return 1 if found[0].verdict.status == "INVALID" else 0
