"""Rings, fork and join with real messages, predicted from the measured network of four virtual hosts (root).

    python benchmarks/messages.py

The hosts form a lab with links of three classes: two hosts without a limit, one with 200 Mbit/s, one with
50 Mbit/s. `characterize --network` measures every pair; nothing of the lab's description is used in a
prediction. Each application is calibrated, predicted, and run 20 times. A fork and a join have one child per
host, as in Mendes 2004, 6.1: further messages to a host queue on its link, which a sum of overheads ignores.
The benchmark prints the error of each median, and whether two means of |error| are within the mean limits of
`study app`: of the time due to messages, which is what the network predicts, 15 %; of the run times, 5 % of
their computing and 15 % of their messages. The exit status is 1 if one is not, or if a run is INVALID: too
noisy, or disturbed by other processes. With fewer cores than hosts, the computing of a fork takes turns with
other ranks, which may make it INVALID. It takes about fifteen minutes.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from commands import at_most, built, end, inside

from fembench.base.tables import table
from fembench.base.units import seconds, size
from fembench.records.profile import load_profile
from fembench_studies.programs.compared_messages import ComparedTime, compared
from fembench_studies.programs.record import load_app

HOSTS = """
[[hosts]]
name = "near"
cpus = [0]
[[hosts]]
name = "next"
cpus = [1]
[[hosts]]
name = "far"
cpus = [0]
rate = "200mbit"
[[hosts]]
name = "farthest"
cpus = [1]
rate = "50mbit"
"""
RANKS = "4"
SIZES = "8,1K,4K,16K,64K,128K,256K,512K"  # of the messages that are measured
RUNS = (  # program, tasks, bytes, MPI call
    ("ring", "4", 65536, "isend"),
    ("ring", "4", 262144, "isend"),
    ("ring", "4", 262144, "send"),
    ("fork", "5", 262144, "isend"),
    ("fork", "5", 262144, "send"),
    ("join", "5", 262144, "isend"),
    ("join", "5", 262144, "send"),
)


class Judged(NamedTuple):
    """A run and its two scores."""

    name: str
    makespan: ComparedTime
    messages: ComparedTime


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--folder", default="results/messages", help="folder for all results (default: %(default)s)"
    )
    folder = Path(parser.parse_args().folder)
    folder.mkdir(parents=True, exist_ok=True)
    with built("messages", HOSTS) as lab:
        machine = folder / "machine.json"
        if not machine.exists():
            network = ("--network", "--pairs", "all", "--sizes", SIZES)
            inside(lab, "characterize", "--quick", "--ranks", RANKS, *network, "-o", str(machine))
        for program, tasks, n_bytes, call in RUNS:
            path = path_of(folder, program, n_bytes, call)
            if not path.exists():
                how = ("--ranks", RANKS, "--tasks", tasks, "--bytes", str(n_bytes), "--send", call)
                where = ("--results", str(folder / "apps"), "-o", str(path))
                inside(lab, "study", "app", program, "--machine", str(machine), *how, *where)
    return judge([judged(folder, program, *message) for program, _, *message in RUNS])


def path_of(folder: Path, program: str, n_bytes: int, call: str) -> Path:
    """The file of a run's record."""
    return folder / f"{program}-{n_bytes}-{call}.json"


def judged(folder: Path, program: str, n_bytes: int, call: str) -> Judged:
    """The scores of a run."""
    profile = load_profile(folder / "machine.json")
    makespan, messages = compared(load_app(path_of(folder, program, n_bytes, call)), profile)
    return Judged(f"{program}, {size(n_bytes)}, MPI_{call.capitalize()}", makespan, messages)


def judge(found: Sequence[Judged]) -> int:
    """Prints all errors and the means; 0 if the runs are valid and both means are within their limits."""
    rows = [
        [one.name, score.what, seconds(score.predicted), seconds(score.measured), f"{score.signed:+.1f} %"]
        + [one.makespan.verdict if score is one.makespan else None]
        for one in found
        for score in (one.makespan, one.messages)
    ]
    print(table(["run", "", "predicted", "measured", "error", "verdict"], rows, align="llrrrl"))
    invalid = sum(bool(one.makespan.reason) for one in found)
    parts = {
        "run times": [one.makespan for one in found],
        "time due to messages": [one.messages for one in found],
    }
    promises = [
        at_most(
            f"{name}: mean |error|",
            fmean(s.error for s in scores) / 100,
            fmean(s.limit for s in scores) / 100,
        )
        for name, scores in parts.items()
    ]
    return end(promises, f"{invalid} of {len(found)} runs do not test their prediction" if invalid else "")


if __name__ == "__main__":
    sys.exit(main())
