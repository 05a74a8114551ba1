"""Run one case and verify it.

Starts the case under MPI, says how fast it is, what limits it and whether that is VALID,
and writes one record (JSON) into the results folder. By default, it repeats the case
until the result is precise to 2 %, at least 10 times; --quick takes a look with 3 sets.
m, l and xl do 100, 50 and 25 iterations each time; others solve to --tolerance.
Runs of the same mesh on other numbers of ranks in the folder are compared with it.
Options after `--` go to PETSc.

Examples:
  fembench run m --ranks 2
  fembench run s --quick
  fembench run l --ranks 4 --shares 7:1:1:1
  fembench run m --ranks 2 --solver petsc --precond gamg -- -ksp_monitor
  fembench run part.msh --problem bracket.toml --precond jacobi --tolerance-kind relative
"""

import argparse

from fembench.base.config import json_text
from fembench.base.progress import progress
from fembench.cli.options import call, declare, typed_command
from fembench.cli.shared import ALL, JOB, case_options, fields_from, say

OPTIONS = f"""
--quick: a look: one warm-up and three sets, so that the run is PROVISIONAL
--results DIR = results/single: folder for the record
--weights FILE: take the shares from this file, written by tune or weights
--reference RECORD: one-rank record of the same mesh, problem and work, to compare
    energy and solution with (default: the newest in the results folder)
{JOB}{ALL}--json: print the record as JSON instead of tables
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    declare(parser, OPTIONS)
    case_options(parser)


def run(options: argparse.Namespace) -> int:
    from fembench.report.tables import every_table, selected
    from fembench.workflows import run as workflow

    given = fields_from(options) | {"command": typed_command()}
    found = call(workflow.run, options, **given, tell=progress)
    if options.json:
        print(json_text(found[0]))
        if found.disturbed:
            progress(f"run: {found.disturbed}")
    else:
        say(found.conclusions())
        print(selected(every_table(found.records), options.all))
        print(f"record: {found.source}; next: fembench report {options.results}")
    return 1 if found[0].verdict.status == "INVALID" else 0
