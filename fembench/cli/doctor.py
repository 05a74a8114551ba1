"""Check what this machine or job has, and what is missing.

Checks MPI (and starts two ranks), compilers, kernels, cores, affinity, CPU quotas, clocks, BLAS threads,
libraries and the packages that `fembench peers` compares with. In a batch job or with --hostfile, it starts
a rank on every host, lists processors, memory and accelerators, names hosts with a quota or other work, and
tests that two hosts form one job and that all of them see this folder. Each finding says how to get what is
missing. The exit status is 1 only if something is missing that every run needs.

Examples:
  fembench doctor
  fembench doctor --json
  fembench doctor --hostfile hosts
"""

import argparse
import json
import sys

from fembench.host.finding import Finding


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import hosts_option

    hosts_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(options: argparse.Namespace) -> int:
    from fembench.base.progress import working

    try:
        from fembench.workflows.doctor import examine

        with working("doctor: checking"):
            findings = list(examine(options.hostfile))
    except ModuleNotFoundError as error:  # a library that the check-up itself needs
        how = f"{sys.executable} -m pip install {error.name}"
        findings = [Finding(error.name or str(error), "problem", "not installed", how, required=True)]
    if options.json:
        print(json.dumps([f._asdict() for f in findings], indent=1))
    else:
        print(as_text(findings))
    return 1 if any(f.required and f.status == "problem" for f in findings) else 0


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
