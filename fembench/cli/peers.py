"""Solve the same system with other packages, and compare.

Compares with numpy, scipy, PETSc, scikit-fem + pyamg and DOLFINx. One system is assembled and exported; a
package is timed only if its solution agrees (|du|/|u| <= 1e-6). The packages take turns. Those that are not
installed are listed, with how to install them. `fembench report DIR` shows the result, DIR/peers.json.

Examples:
  fembench peers m
  fembench peers l --ranks 2 --only own petsc --precond none jacobi --iterations 50
  fembench peers part.msh --problem bracket.toml --export exported
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import case_option, job_options, real, whole

    parser.add_argument("mesh", metavar="MESH", help="preset, box:…, or a mesh file, as in fembench run")
    case_option(parser, "problem")
    parser.add_argument(
        "--ranks", type=whole(1), default=1, metavar="N", help="run fembench and PETSc also on N ranks"
    )
    parser.add_argument("--shares", default="", metavar="SHARES", help="target share of each of the N ranks")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="own, own-sym, numpy, petsc, petsc-baij, …"
    )
    parser.add_argument(
        "--precond", nargs="+", default=[], metavar="NAME", help="none, jacobi, block-jacobi, gamg, pyamg"
    )
    parser.add_argument(
        "--tolerance",
        type=real(0),
        default=1e-8,
        metavar="NUMBER",
        help="stop at this relative, unpreconditioned residual |r|/|f|",
    )
    parser.add_argument("--repetitions", type=whole(1), default=5, metavar="N", help="solves per package")
    parser.add_argument(
        "--iterations",
        type=whole(0),
        default=0,
        metavar="N",
        help="after one solve to the tolerance, repeat only N iterations; for large meshes",
    )
    parser.add_argument(
        "--parity",
        choices=("solution", "iterate"),
        default="solution",
        help="what must agree: the solution or, with --iterations, the last iterate with that of numpy; "
        "this takes seconds where a solve takes minutes (only with none and jacobi)",
    )
    parser.add_argument("--export", default="", metavar="DIR", help="write K, f and u (npz, PETSc binary)")
    parser.add_argument(
        "--dolfinx-python",
        default="",
        metavar="FILE",
        help="a Python that has dolfinx (default: search for one)",
    )
    parser.add_argument("--results", default="results/peers", metavar="DIR", help="folder for peers.json")
    job_options(parser, timeout=0.0)
    parser.add_argument("--json", action="store_true", help="print the record as JSON instead of tables")


def run(options: argparse.Namespace) -> int:
    """0, or 1 if a peer is installed but has no time."""
    from fembench.base.config import json_text
    from fembench.base.progress import progress, working
    from fembench.launch.scratch import occupied
    from fembench.peers.start import launch_peers
    from fembench.records.contest import save_peers
    from fembench.report.peer_tables import peers_tables
    from fembench.report.table import text

    job = job_of(options)
    folder = Path(options.results)
    with occupied(folder), working("peers: solving"):
        record = launch_peers(
            job,
            scratch=folder,
            hostfile=options.hostfile,
            timeout=options.timeout,
            progress=_sometimes(progress),
        )
        path = save_peers(record, folder)
    if options.json:
        print(json_text(record))
    else:
        for table in peers_tables(record):
            print(f"{table.title}\n{table.note}\n\n{text(table)}\n")
        print(f"record: {path}")
    return 1 if any(r.status in ("failed", "no parity") for r in record.runs) else 0


def _sometimes(show: Callable[[str], None]) -> Callable[[str], None]:
    """A line of progress, at most every two seconds."""
    last = time.monotonic()

    def line(text: str) -> None:
        nonlocal last
        if time.monotonic() - last > 2.0:
            last = time.monotonic()
            show(f"peers: {text}")

    return line


def job_of(options: argparse.Namespace):
    """The contest that the options describe. Raises InputError."""
    from fembench.cli.shared import typed_command
    from fembench.peers.catalog import chosen, find_dolfinx
    from fembench.peers.peers_job import PeersJob
    from fembench.records.case import new_case

    entries = chosen(options.only, options.precond)
    if options.parity == "iterate":
        _iterates_alike(options.iterations, entries)
    values = {name: getattr(options, name) for name in ("mesh", "problem", "ranks", "shares", "tolerance")}
    case = new_case(values | {"tolerance_kind": "relative"}, "options")
    wants_dolfinx = any(e.peer == "dolfinx" for e in entries)
    return PeersJob(
        case=case,
        names=tuple(e.name for e in entries),
        repetitions=options.repetitions,
        iterations=options.iterations,
        parity=options.parity,
        export=str(Path(options.export).resolve()) if options.export else "",
        dolfinx_python=find_dolfinx(options.dolfinx_python) if wants_dolfinx else "",
        command=typed_command(),
    )


def _iterates_alike(iterations, entries) -> None:
    """Raises InputError if the iterates of the entries differ from those of numpy."""
    from fembench.base.errors import InputError

    if not iterations:
        raise InputError("--parity iterate: expected --iterations N, too")
    other = next((e.precond for e in entries if e.precond not in ("none", "jacobi")), None)
    if other:
        raise InputError(f"--parity iterate: expected --precond none jacobi, got '{other}' too")
