"""Time predicted from an executable, against the time that the program takes.

    python benchmarks/binaries.py [--only pipeline] [--levels O0,O2] [--ranks 2,4] [--runs 5] [--machine FILE]

Six programs of classic kinds (benchmarks/binaries: sweeps over a grid, a sort, Monte Carlo, power iteration,
a pipeline, a master and its workers) are compiled with mpicc at -O0, -O2 and -O3. Messages between two ranks
are measured first (`characterize --network --quick`), or read from --machine. All predictions,
for 2 and for 4 ranks, are written and sealed with a hash; then the programs run. Their time is the median of
all runs, from MPI_Init to MPI_Finalize on the slowest rank. A prediction is kept if its interval contains the
time and is at most 20 % wide to each side; one that is wider must say why. Exit status 0 if five of six are
kept and no wide one is without its reason, 1 if not, or if others used the processors meanwhile, 2 without
mpicc.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from commands import Promise, at_least, disturbance, end, fembench

from fembench.base.tables import table
from fembench.base.units import seconds

HERE = Path(__file__).parent / "binaries"
BIN = Path(sys.executable).parent
KEPT = 5 / 6  # of all predictions
WIDE = 0.2  # half-width of an interval
LINE = re.compile(r"^timed ([0-9.]+) s$", re.MULTILINE)
PROGRAMS = {
    "jacobi": "1000 200",
    "oddeven": "3000000",
    "montecarlo": "40000000",
    "matvec": "1200 300",
    "pipeline": "300",
    "workers": "600",
}


class Plan(NamedTuple):
    """A program, its level of optimisation, and the number of ranks."""

    name: str
    level: str
    ranks: int

    def __str__(self) -> str:
        return f"{self.name} -{self.level}, {self.ranks} ranks"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="PROGRAM,…", help=", ".join(PROGRAMS))
    parser.add_argument("--levels", default="O0,O2,O3", metavar="LEVEL,…", help="levels of optimisation")
    parser.add_argument("--ranks", default="2,4", metavar="N,…", help="numbers of ranks")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs of each program (default: 5)")
    parser.add_argument(
        "--machine", metavar="FILE", help="machine profile with a network (default: measured)"
    )
    parser.add_argument("--json", metavar="FILE", help="write predictions and times")
    options = parser.parse_args()
    if not shutil.which("mpicc", path=search_path()):
        print("binaries.py: no mpicc; expected that of an MPI installation", file=sys.stderr)
        return 2
    chosen = options.only.split(",") if options.only else list(PROGRAMS)
    plans = [
        Plan(name, level, int(ranks))
        for ranks in options.ranks.split(",")
        for name in chosen
        for level in options.levels.split(",")
    ]
    with tempfile.TemporaryDirectory() as folder:
        options.machine = options.machine or measured_machine(Path(folder))
        return judged(plans, options, Path(folder))


def measured_machine(folder: Path) -> str:
    """The path of a machine profile with the messages between two ranks."""
    path = str(folder / "machine.json")
    fembench("characterize", "--ranks", "2", "--network", "--quick", "-o", path, capture=True)
    return path


def judged(plans: Sequence[Plan], options: argparse.Namespace, folder: Path) -> int:
    """Compile, predict, seal, run and score."""
    disturbed = disturbance()
    predictions = {str(plan): predicted(plan, options.machine, folder) for plan in plans}
    seal = hashlib.sha256(json.dumps(predictions, indent=1).encode()).hexdigest()
    print(f"load {os.getloadavg()[0]:.1f}; predictions sealed: sha256 {seal}", flush=True)
    times = {str(plan): measured(plan, options.runs, folder) for plan in plans}
    rows, kept, silent = [], 0, 0
    for name, prediction in predictions.items():
        verdict = verdict_of(prediction, statistics.median(times[name]))
        kept += verdict == "kept"
        silent += verdict == "WIDE WITHOUT A REASON"
        rows.append([name, *row_of(prediction, times[name]), verdict])
    heads = ["program", "predicted", "interval", "half-width", "time", "of the runs", "verdict"]
    print(table(heads, rows, align="lrlrrll"))
    for reason in sorted({p["wide"] for p in predictions.values() if p["wide"]}):
        print(f"wide: {' '.join(reason.split())}")
    promises = [
        at_least("predictions whose interval contains the time", kept / len(plans), KEPT, ".0%"),
        Promise("wide intervals without a reason", str(silent), "0", not silent),
    ]
    return end(promises, disturbed(), file=options.json, predictions=predictions, times=times)


def verdict_of(prediction: dict, time: float) -> str:
    """Whether a prediction is kept."""
    if prediction["wide"]:
        return "says why it is wide"
    low, high = prediction["low"], prediction["high"]
    if (high - low) / (high + low) > WIDE:
        return "WIDE WITHOUT A REASON"
    return "kept" if low <= time <= high else "OUTSIDE"


def row_of(prediction: dict, times: Sequence[float]) -> list[str]:
    """The prediction and the times of the runs, as text."""
    low, high = prediction["low"], prediction["high"]
    return [
        seconds(prediction["seconds"]),
        f"{seconds(low)} to {seconds(high)}",
        f"{(high - low) / (high + low):.0%}",
        seconds(statistics.median(times)),
        f"{seconds(min(times))} to {seconds(max(times))}",
    ]


def search_path() -> str:
    """Where programs are searched: first beside Python."""
    return f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"


def called(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """A command that must succeed."""
    variables = {**os.environ, "PATH": search_path()}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=variables)
    if done.returncode:
        raise SystemExit(f"binaries.py: {shlex.join(words)}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done


def predicted(plan: Plan, machine: str, folder: Path) -> dict:
    """The prediction of a program, which is compiled here."""
    path = executable(plan, folder)
    called(["mpicc", f"-{plan.level}", "-o", path, str(HERE / f"{plan.name}.c"), "-lm"])
    words = ["fembench", "trace", "--binary", path, "--ranks", str(plan.ranks), "--link", machine, "--json"]
    return json.loads(called([*words, "--args", PROGRAMS[plan.name]]).stdout)


def executable(plan: Plan, folder: Path) -> str:
    """The path of a compiled program."""
    return str(folder / f"{plan.name}-{plan.level}")


def measured(plan: Plan, runs: int, folder: Path) -> list[float]:
    """Seconds of each run, on the slowest rank."""
    timer = str(folder / "timer.so")
    if not Path(timer).exists():
        called(["mpicc", "-O1", "-shared", "-fPIC", "-o", timer, str(HERE / "timer.c")])
    words = ["mpiexec", "--map-by", ":OVERSUBSCRIBE", "-x", f"LD_PRELOAD={timer}", "-n", str(plan.ranks)]
    words += [executable(plan, folder), *PROGRAMS[plan.name].split()]
    return [float(LINE.findall(called(words).stderr)[0]) for _ in range(runs)]


if __name__ == "__main__":
    sys.exit(main())
