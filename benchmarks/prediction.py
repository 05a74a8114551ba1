"""Accuracy of predictions: measure the machine, learn, predict, run and compare, in one command.

    python benchmarks/prediction.py emulated   16 emulated ranks of speeds 1 : 4; training on 4, 10 and 14
                                               ranks, tests on 3, 6, 8 and 16 with other meshes and shares
                                               (about an hour on two cores)
    python benchmarks/prediction.py lab        two unequal hosts, 100 Mbit/s between them (root; 15 minutes)
    python benchmarks/prediction.py real       this machine's own cores (6 minutes)

Every step writes into --folder (default: results/prediction-WHICH) and is skipped if it has been done: an
interrupted benchmark continues. Predictions are written and sealed before the runs that test them. Prints the
tables of fembench validate and whether the targets are met. The exit status is 1 if one is not, or if the
runs are too noisy to compare.
"""

import argparse
import contextlib
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from commands import built, fembench, inside

from fembench.base.tables import table
from fembench.model.score import PredictionScore

HERE = Path(__file__).resolve().parent / "prediction"
SPEEDS = "1,0.5,0.25,1,0.7,0.35,0.8,0.5,0.25,0.9,0.4,1,0.6,0.3,0.75,0.45"
EMULATED = ("--ranks", "16", "--emulate", SPEEDS, "--dilate", "24")
GRID = (
    'machine = "machine.json"\ntraining = "train"\nheld_out = "held"\npredictions = "said"\nlearn = {learn}\n'
)
PROMISES = {  # median |error|, p90, |bias|, coverage from, to, tau, better than every baseline
    "emulated": (0.03, 0.06, 0.02, 0.85, 0.95, 0.9, True),
    "lab": (0.10, None, None, None, None, None, False),
    "real": (0.05, None, None, None, None, None, False),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", choices=tuple(PROMISES))
    parser.add_argument(
        "--folder", default="", help="folder for all results (default: results/prediction-WHICH)"
    )
    parser.add_argument("--quick", action="store_true", help="measure the machine with --quick")
    options = parser.parse_args()
    folder = Path(options.folder or f"results/prediction-{options.which}")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train.toml", "held.toml"):
        shutil.copyfile(HERE / options.which / name, folder / name)
    learn = options.which != "lab"  # its hosts share a machine: a run on one rank has the machine for itself
    (folder / "grid.toml").write_text(GRID.format(learn=str(learn).lower()))
    hosts = HERE / options.which / "cluster.toml"
    with built("prediction", hosts.read_text()) if hosts.exists() else contextlib.nullcontext("") as lab:
        measure(folder, options.which, lab, ["--quick"] if options.quick else [])
        run_all(folder, lab)
    return judge(folder, options.which)


def measure(folder: Path, which: str, lab: str, how: Sequence[str]) -> None:
    """The machine's profile with its network; the network is measured without emulation."""
    machine = folder / "machine.json"
    if machine.exists():
        return
    emulated = EMULATED if which == "emulated" else ()
    part = folder / "speeds.json"
    if not part.exists():
        inside(lab, "characterize", *emulated, *how, "-o", str(part))
    inside(lab, "characterize", "--add-to", str(part), *how, "-o", str(machine))


def run_all(folder: Path, lab: str) -> None:
    """Training runs, predictions, held-out runs."""
    sweep = ("--no-report", "--results")
    inside(lab, "sweep", str(folder / "train.toml"), *sweep, str(folder / "train"))
    fembench("validate", str(folder / "grid.toml"), "--cases", str(folder / "held.toml"))
    inside(lab, "sweep", str(folder / "held.toml"), *sweep, str(folder / "held"))


def judge(folder: Path, which: str) -> int:
    """Prints the tables and the targets; 0 if all are met."""
    print(fembench("validate", str(folder / "grid.toml"), capture=True))
    scores = json.loads(fembench("validate", str(folder / "grid.toml"), "--json", capture=True))
    (folder / "scores.json").write_text(json.dumps(scores, indent=1))
    ours = scores["fembench"]
    rows = list(promises(ours, scores, which))
    print(table(["target", "measured", "met"], rows, align="lrl"))
    return 0 if all(row[2] == "yes" for row in rows) else 1


def promises(ours: dict, scores: dict, which: str):
    """(target, measured, yes or no) of this benchmark."""
    median, p90, bias, least, most, tau, best = PROMISES[which]
    asked = [(f"median |error| <= {median:.0%}", ours["median"], ours["median"] <= median)]
    if p90 is not None:
        asked += [
            (f"p90 <= {p90:.0%}", ours["p90"], ours["p90"] <= p90),
            (f"|bias| <= {bias:.0%}", ours["bias"], abs(ours["bias"]) <= bias),
            (
                f"intervals cover {least:.0%} to {most:.0%}",
                ours["coverage"],
                least <= ours["coverage"] <= most,
            ),
            (f"Kendall tau >= {tau}", ours["tau"], ours["tau"] >= tau),
        ]
    if best:
        others = {n: s["median"] for n, s in scores.items() if n != "cells" and not n.startswith("fembench")}
        nearest = min(others, key=lambda name: others[name])
        asked.append((f"better than {nearest}", others[nearest], ours["median"] < others[nearest]))
    no = "INVALID: too noisy" if PredictionScore(**ours).invalid else "NO"
    yield from ([what, f"{value:.3f}", "yes" if kept else no] for what, value, kept in asked)


if __name__ == "__main__":
    sys.exit(main())
