"""Check what this machine or job has, and what is missing.

Checks MPI (and starts two ranks), compilers, kernels, cores, affinity, CPU quotas,
clocks, BLAS threads, libraries and the packages that `fembench peers` compares with. In
a batch job or with --hostfile, it starts a rank on every host, lists processors, memory
and accelerators, names hosts with a quota or other work, and tests that two hosts form
one job and that all of them see this folder. Each finding says how to get what is
missing. The exit status is 1 only if something is missing that every run needs.

Examples:
  fembench doctor
  fembench doctor --json
  fembench doctor --hostfile hosts
"""

import argparse
import json

from fembench.base.progress import working
from fembench.cli.shared import HOSTS

OPTIONS = f"""{HOSTS}--json: print JSON instead of a table
"""


def run(options: argparse.Namespace) -> int:
    from fembench.workflows.doctor import as_text, doctor, nothing_runs

    with working("doctor: checking"):
        findings = doctor(options.hostfile)
    print(json.dumps([f._asdict() for f in findings], indent=1) if options.json else as_text(findings))
    return int(nothing_runs(findings))
