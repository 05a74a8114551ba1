"""Solve the same system with other packages, and compare.

Compares with numpy, scipy, PETSc and scikit-fem + pyamg; on a GPU with cupyx and with a
PETSc that has CUDA. One system is assembled and exported; a package is timed only if
its solution agrees (|du|/|u| <= 1e-6). The packages take turns. Those that are not
installed are listed, with how to install them.
`fembench report DIR` shows the result, DIR/peers.json.

Examples:
  fembench peers m
  fembench peers l --ranks 2 --only own petsc --precond none jacobi --iterations 50
  fembench peers part.msh --problem bracket.toml --export exported
"""

import argparse

from fembench.base.config import json_text
from fembench.cli.options import call, declare, real, typed_command
from fembench.cli.shared import JOB, case_option
from fembench.records.contest import PARITIES

OPTIONS = f"""
mesh MESH: preset, box:…, or a mesh file, as in fembench run
--ranks N = 1: run fembench and PETSc also on N ranks
--shares SHARES: target share of each of the N ranks
--only NAME+: own, own-sym, own-gpu, numpy, cupyx, petsc, petsc-baij, …
--precond NAME+: none, jacobi, block-jacobi, gamg, pyamg
--tolerance NUMBER = 1e-8: stop at this relative, unpreconditioned residual |r|/|f|
--repetitions N = 5: solves per package
--iterations N: after one solve to the tolerance, repeat only N iterations; for large meshes
--parity CHOICE = solution: what must agree: the solution or, with
    --iterations, the last iterate with that of numpy; this takes seconds where a solve
    takes minutes (only with none and jacobi)
--export DIR: write K, f and u (npz, PETSc binary)
--results DIR = results/peers: folder for peers.json
{JOB}--json: print the record as JSON instead of tables
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    declare(parser, OPTIONS, tolerance=real(0, 1, inner=True), parity=PARITIES)
    case_option(parser, "problem")


def run(options: argparse.Namespace) -> int:
    """0, or 1 if a peer is installed but has no time."""
    from fembench.report.peer_tables import peers_tables
    from fembench.report.table import text
    from fembench.workflows.peers import contested

    record, path = call(contested, options, command=typed_command())
    if options.json:
        print(json_text(record))
    else:
        for table in peers_tables(record):
            print(f"{table.title}\n{table.note}\n\n{text(table)}\n")
        print(f"record: {path}")
    return 1 if any(r.status in ("failed", "no parity") for r in record.runs) else 0
