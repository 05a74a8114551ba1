"""Accuracy of predictions: measure the machine, learn, predict, run and compare, in one command.

    python benchmarks/prediction.py emulated   16 emulated ranks of speeds 1 : 4; training on 4, 10 and 14
                                               ranks, tests on 3, 6, 8 and 16 with other meshes and shares
                                               (about an hour on two cores)
    python benchmarks/prediction.py lab        two unequal hosts, 100 Mbit/s between them (root; 15 minutes)
    python benchmarks/prediction.py real       this machine's own cores (12 minutes)

Every step writes into --folder (default: results/prediction-WHICH) and is skipped if it has been done: an
interrupted benchmark continues. Training has two passes over all configurations, before and after the
network is measured, so that the intervals contain what changes in between. Predictions are written and sealed
before the runs that test them. Prints the tables of fembench validate and whether the targets are met: those
of the simulation and, but in the lab, those of the closed form and of the intervals. The exit status is 1 if
one is not. If the machine changed after the training, or the runs are too noisy, the verdict is INVALID and
no target is judged.
"""

import argparse
import contextlib
import json
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from calibrated import WIDEST, coverage_text, covers, not_too_wide
from commands import Promise, at_least, at_most, built, end, fembench, inside

from fembench.model.score import BASELINE, PredictionScore

HERE = Path(__file__).resolve().parent / "prediction"
SPEEDS = "1,0.5,0.25,1,0.7,0.35,0.8,0.5,0.25,0.9,0.4,1,0.6,0.3,0.75,0.45"
EMULATED = ("--ranks", "16", "--emulate", SPEEDS, "--dilate", "24")
GRID = (
    'machine = "machine.json"\ntraining = ["train-1", "train-2"]\nheld_out = "held"\n'
    'predictions = "said"\nlearn = {learn}\n'
)


class Targets(NamedTuple):
    """The targets of a benchmark; those that are None are not asked."""

    simulation: float  # median |error|
    closed_form: float | None = None  # the same; with it, intervals are judged
    p90: float | None = None  # of |error|; with it, the simulation must also be better than the baseline
    bias: float = 0.0  # absolute
    tau: float = 0.0
    covered: float = 0.0  # least fraction of runs inside; intervals that cover all are judged by their width


TARGETS = {
    "emulated": Targets(0.03, closed_form=0.06, p90=0.06, bias=0.02, tau=0.9),
    "lab": Targets(0.10),
    "real": Targets(0.06, closed_form=0.10, covered=0.80),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", choices=tuple(TARGETS))
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
        how = ("--quick",) if options.quick else ()
        run_all(folder, lab, how, EMULATED if options.which == "emulated" else ())
    return judge(folder, options.which)


def run_all(folder: Path, lab: str, how: Sequence[str], emulated: Sequence[str]) -> None:
    """Speeds, first pass of the training, network, second pass, predictions, held-out runs.

    The network is measured without emulation.
    """
    speeds, machine = folder / "speeds.json", folder / "machine.json"
    sweep = ("--no-report", "--results")
    passes = []
    for number, text in enumerate(two_passes((folder / "train.toml").read_text()), 1):
        passes.append((folder / f"train-{number}.toml", folder / f"train-{number}"))
        passes[-1][0].write_text(text)
    if not speeds.exists():
        inside(lab, "characterize", *emulated, *how, "-o", str(speeds))
    inside(lab, "sweep", str(passes[0][0]), *sweep, str(passes[0][1]))
    if not machine.exists():
        inside(lab, "characterize", "--add-to", str(speeds), *how, "-o", str(machine))
    inside(lab, "sweep", str(passes[1][0]), *sweep, str(passes[1][1]))
    fembench("validate", str(folder / "grid.toml"), "--cases", str(folder / "held.toml"))
    inside(lab, "sweep", str(folder / "held.toml"), *sweep, str(folder / "held"))


def two_passes(campaign: str) -> list[str]:
    """The campaign with half of its repetitions, and with the others; at least one each."""
    line = re.compile(r"^repetitions = (\d+)$", re.M)
    found = line.search(campaign)
    times = int(found[1]) if found else 1
    counts = (max(times // 2, 1), max(times - times // 2, 1))
    rest = line.sub("", campaign)
    return [f"repetitions = {count}\n{rest}" for count in counts]


def judge(folder: Path, which: str) -> int:
    """Prints the tables and the targets; 0 if all are met."""
    print(fembench("validate", str(folder / "grid.toml"), capture=True))
    scores = json.loads(fembench("validate", str(folder / "grid.toml"), "--json", capture=True))
    (folder / "scores.json").write_text(json.dumps(scores, indent=1))
    return end(promises(scores, which), invalid(scores))


def invalid(scores: dict) -> str:
    """Why the runs test no prediction; "" if they do."""
    ours = PredictionScore(**scores["fembench"])
    noisy = f"{ours.left_out} of {ours.cells + ours.left_out} configurations vary too much" * ours.invalid
    return "; ".join(filter(None, (scores["state"]["stale"], noisy)))


def promises(scores: dict, which: str) -> Iterator[Promise]:
    """The targets of this benchmark; none if no configuration can be judged."""
    targets = TARGETS[which]
    ours = PredictionScore(**scores["fembench"])
    if not ours.cells:
        return
    yield at_most("simulation: median |error|", ours.median, targets.simulation)
    if targets.p90 is not None:
        yield from ahead(ours, targets, scores)
    if targets.closed_form is not None:
        closed = PredictionScore(**scores["fembench, analytic"])
        yield from intervals("simulation", ours, targets.covered)
        yield at_most("closed form: median |error|", closed.median, targets.closed_form)
        yield from intervals("closed form", closed, targets.covered)


def ahead(ours: PredictionScore, targets: Targets, scores: dict) -> Iterator[Promise]:
    """The targets beyond the median, and the comparison with a simpler model."""
    simple = scores[BASELINE]["median"]
    yield at_most("simulation: 90th percentile of |error|", ours.p90, targets.p90)
    yield at_most("simulation: |bias|", abs(ours.bias), targets.bias)
    yield at_least("simulation: Kendall's tau", ours.tau, targets.tau, ".3f")
    what, better = f"simulation: median |error|, against {BASELINE}", ours.median < simple
    yield Promise(what, f"{ours.median:.1%}", f"< {simple:.1%}", better)


def intervals(method: str, score: PredictionScore, least: float = 0.0) -> Iterator[Promise]:
    """Whether as many runs as claimed are inside, and intervals are no wider than the errors ask for."""
    region = coverage_text(score.cells) + f", and at least {least:.0%}" * bool(least)
    inside = covers(score.coverage, score.cells) and score.coverage >= least
    yield Promise(f"{method}: runs inside the interval", f"{score.coverage:.1%}", region, inside)
    widest, narrow = f"<= {WIDEST * score.p90:.1%}", not_too_wide(score.half_width, score.p90)
    yield Promise(f"{method}: half-width of intervals", f"{score.half_width:.1%}", widest, narrow)


if __name__ == "__main__":
    sys.exit(main())
