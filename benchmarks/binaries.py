"""Three compiled MPI programs, predicted from their executables before they run.

    python benchmarks/binaries.py [--only product] [--levels O0,O2] [--runs 20] [--clock processor]

The programs in benchmarks/binaries are compiled with mpicc at -O0, -O1 and -O2. All predictions are written
and sealed with a hash first; then the programs run. Where all counts are known, the error must be at most
10 %. Where counts are drawn (the steps of Newton's method in the integral, counted in a run with fewer
trapezoids), the time must lie within the interval. The time of a program is the shortest of all runs, of its
slowest rank: by the wall clock, or by the processor clock where others use the machine as well. Exit status 0
if all predictions hold, 1 if not, 2 without mpicc.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from commands import Promise, end

from fembench.base.tables import table
from fembench.base.units import seconds

HERE = Path(__file__).parent / "binaries"
BIN = Path(sys.executable).parent
MOST = 0.10  # error where all counts are known
LINK = "1e-6,5e9"  # within a host
CALLS = dict.fromkeys(("atoi", "strtol", "clock"), 1e-7) | dict.fromkeys(("malloc", "printf"), 1e-6)
LINE = re.compile(r"^rank \d+: ([0-9.]+) s, ([0-9.]+) s of processor", re.MULTILINE)
RANKS = 2


class Planned(NamedTuple):
    """A program, its argument, and that of the run which counts what the code does not fix."""

    name: str
    argument: str
    counted: str = ""


PROGRAMS = (Planned("integral", "400000", "2000"), Planned("product", "64 60"), Planned("sweeps", "10"))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="PROGRAM", help="integral, product or sweeps")
    parser.add_argument("--levels", default="O0,O1,O2", metavar="LEVEL,…", help="levels of optimisation")
    parser.add_argument(
        "--runs", type=int, default=20, metavar="N", help="runs of each program (default: 20)"
    )
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall", help="clock that is judged")
    parser.add_argument("--json", metavar="FILE", help="write predictions and times")
    options = parser.parse_args()
    if not shutil.which("mpicc", path=search_path()):
        print("binaries.py: no mpicc; expected that of an MPI installation", file=sys.stderr)
        return 2
    chosen = [p for p in PROGRAMS if options.only in ("", p.name)]
    with tempfile.TemporaryDirectory() as folder:
        return judged(chosen, options, Path(folder))


def judged(programs: Sequence[Planned], options: argparse.Namespace, folder: Path) -> int:
    """Compile, predict, seal, run and score."""
    plans = [(p, level) for p in programs for level in options.levels.split(",")]
    predictions = {f"{p.name} -{level}": predicted(p, level, folder) for p, level in plans}
    text = json.dumps(predictions, indent=1)
    seal = hashlib.sha256(text.encode()).hexdigest()
    print(f"load {os.getloadavg()[0]:.1f}; predictions sealed: sha256 {seal}", flush=True)
    times = {f"{p.name} -{level}": measured(p, level, options.runs, folder) for p, level in plans}
    rows, promises = [], []
    for name, prediction in predictions.items():
        wall, processor = times[name]
        real = processor if options.clock == "processor" else wall
        error = prediction["seconds"] / real - 1
        interval = f"{seconds(prediction['low'])} to {seconds(prediction['high'])}"
        inside = prediction["low"] <= real <= prediction["high"]
        if prediction["drawn"]:
            promises.append(Promise(f"{name}, counts drawn: time", seconds(real), interval, inside))
        else:
            limit, good = f"within {MOST:.0%}", abs(error) <= MOST
            promises.append(Promise(f"{name}, counts known: error", f"{error:+.1%}", limit, good))
        times_of = map(seconds, (prediction["seconds"], wall, processor))
        rows.append([name, *times_of, interval, f"{error:+.1%}"])
    print(table(["program", "predicted", "wall", "processor", "interval", "error"], rows, align="lrrrlr"))
    print(f"judged by the {options.clock} clock; load {os.getloadavg()[0]:.1f}")
    return end(promises, file=options.json, predictions=predictions, times=times)


def search_path() -> str:
    """Where programs are searched: first beside Python."""
    return f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"


def called(words: Sequence[str]) -> str:
    """What a command prints."""
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env={**os.environ, "PATH": search_path()}
    )
    if done.returncode:
        raise SystemExit(f"binaries.py: {shlex.join(words)}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def predicted(program: Planned, level: str, folder: Path) -> dict:
    """The prediction of a program, which is compiled here."""
    path = executable(program, level, folder)
    called(["mpicc", f"-{level}", "-o", path, str(HERE / f"{program.name}.c")])
    words = ["fembench", "trace", "--binary", path, "--ranks", str(RANKS), "--link", LINK, "--json"]
    words += [
        "--args",
        program.argument,
        "--calls",
        ",".join(f"{name}={cost:g}" for name, cost in CALLS.items()),
    ]
    if program.counted:
        command = shlex.join(["mpiexec", "-n", str(RANKS), path, program.counted])
        words += ["--count", command, "--profile", f"{path}.profile"]
    return json.loads(called(words))


def executable(program: Planned, level: str, folder: Path) -> str:
    """The path of a compiled program."""
    return str(folder / f"{program.name}-{level}")


def measured(program: Planned, level: str, runs: int, folder: Path) -> tuple[float, float]:
    """(wall, processor) seconds of the slowest rank in the shortest run."""
    words = ["mpiexec", "-n", str(RANKS), executable(program, level, folder), *program.argument.split()]
    found = [LINE.findall(called(words)) for _ in range(runs)]
    wall, processor = (min(max(float(rank[k]) for rank in run) for run in found) for k in (0, 1))
    return wall, processor


if __name__ == "__main__":
    sys.exit(main())
