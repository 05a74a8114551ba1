"""Unequal ranks: are planted speeds found, do weights reach the ideal, how much do the rules gain in a lab?

    python benchmarks/heterogeneity.py [--only speeds,lab] [--json FILE]

    speeds      emulated speeds, as found by characterize and from the records of three runs
    two, four   fembench tune with emulated speeds (1, .5) and (1, 1, .5, .5)
    equal       the same with equal ranks: nothing to gain
    useless     the same with (1, 1, 1, .02): the last rank is better left out
    lab-speeds  a lab of two hosts with 100 % and 25 % of a CPU: the speeds that characterize finds    (root)
    lab         fembench tune in that lab, and the fast host alone                                     (root)
    links       rule comm compared with rule time: three ranks in a row, the last behind a slow link   (root)

Run it on an idle machine. Each part takes two to six minutes. The exit status is 1 if a target is
not met.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import msgspec
import numpy as np
from commands import Promise, at_most, built, end, fembench, inside

from fembench.host.host import usable_cores
from fembench.records.phases import ASSEMBLY, AXPY, PRODUCT_PARTS
from fembench.records.record import Record
from fembench.records.store import load_all
from fembench.records.times import Times
from fembench.stats.compare import compare_paired, noise_of_series
from fembench.weights.observe import observe

UNEQUAL = """
[[hosts]]
name = "fast"
cpus = [0]
[[hosts]]
name = "slow"
cpus = [1]
speed = 0.25
"""
ROW = """
[[hosts]]
name = "near"
cpus = [0, 1]
slots = 2
[[hosts]]
name = "far"
cpus = [0, 1]
slots = 1
rate = "20mbit"
"""
Rows = Iterator[Promise]


def planted(speeds: str) -> tuple[str, ...]:
    """Options for ranks of these speeds, dilated so that all have time to spare.

    Ranks beyond the cores need more: an all-reduce among them takes half a millisecond.
    """
    ranks = speeds.count(",") + 1
    dilate = 2 if ranks <= usable_cores() else 6 * ranks
    return ("--ranks", str(ranks), "--emulate", speeds, "--dilate", str(dilate))


def off(weights: str, truth: list[float]) -> float:
    """The largest relative error of the speeds in printed weights; both scaled to the same sum."""
    shares = [rank["share"] for rank in json.loads(weights)["ranks"]]
    return max(abs(s * sum(truth) / t - 1) for s, t in zip(shares, truth))


def work_per_cell(folder: str) -> np.ndarray:
    """[rank] relative work per cell of its part: blocks and dofs per cell differ between parts, because a
    part may have more surface, or supports. Each kind counts by the time that it takes."""
    record = load_all(folder)[0]
    parts, times = record.partition, np.median(Times(record).timed, axis=0).sum(axis=0)
    kinds = ((ASSEMBLY,), parts.cells), (PRODUCT_PARTS, parts.blocks), ((AXPY,), parts.dofs)
    spent = [times[list(phases)].sum() for phases, _ in kinds]
    each = [np.divide(units, parts.cells) for _, units in kinds]
    return np.average([e / e.mean() for e in each], axis=0, weights=spent)


def speeds() -> Rows:
    """Each three times in turns, so that a temporary disturbance of one processor does not decide."""
    texts = ("1,1,0.5,0.25", "1,0.7", "1,0.13")
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(3):
            for text in texts:
                fixed = ("--iterations", "20", "--warmups", "3", "--sets", "5")
                fembench("run", "l", *planted(text), *fixed, "--results", f"{folder}/{text}", capture=True)
        for text in texts:
            given = [float(s) for s in text.split(",")]
            machine = f"{folder}/machine.json"
            weights = fembench("weights", f"{folder}/{text}/runs", "--json", capture=True)
            found = off(weights, (given / work_per_cell(f"{folder}/{text}")).tolist())
            what = f"records of 3 runs, speeds {text}: largest error"
            yield at_most(f"{what}, parts counted", found, 0.03)
            yield Promise(f"{what}, all cells alike", f"{off(weights, given):.1%}", "")
            fembench("characterize", *planted(text), "-o", machine, capture=True)
            found = off(fembench("weights", machine, "--rule", "rate", "--json", capture=True), given)
            yield at_most(f"characterize, speeds {text}: largest error", found, 0.03)


def tuned(mesh: str, *options: str, lab: str = "") -> dict:
    """The output of fembench tune --json."""
    with tempfile.TemporaryDirectory() as folder:
        return json.loads(inside(lab, "tune", mesh, *options, "--results", folder, "--json", capture=True))


def near_ideal(name: str, proof: dict) -> Rows:
    over, captured = proof["weighted_over_ideal"], proof["captured_gain"]
    noise = f"A/A noise {proof['noise']:.1%}, {proof['pairs']} pairs"
    yield Promise(f"{name}: time over the ideal", f"{over:.3f} ({noise})", "<= 1.05", over <= 1.05)
    if captured is None:
        yield Promise(f"{name}: captured gain", "nothing to capture", ">= 0.9", False)
        return
    low, high, *_ = proof["captured_interval"]
    found = f"{captured:.2f} (95 %: {low:.2f} to {high:.2f})"
    yield Promise(f"{name}: captured gain", found, ">= 0.9", captured >= 0.9)


def two() -> Rows:
    return near_ideal("l, speeds 1, .5", tuned("l", *planted("1,0.5"), "--iterations", "60"))


def four() -> Rows:
    fixed = ("--iterations", "15", "--warmups", "3", "--sets", "3")
    return near_ideal("l, speeds 1, 1, .5, .5", tuned("l", *planted("1,1,0.5,0.5"), *fixed))


def equal() -> Rows:
    proof = tuned("m", "--ranks", "2")
    kept = proof["verdict"] == "no gain"
    yield Promise("m, equal ranks: verdict", proof["text"], "no detectable gain", kept)


def useless() -> Rows:
    proof = tuned("m", "--ranks", "4", "--emulate", "1,1,1,0.02", "--dilate", "8", "--iterations", "20")
    kept = proof["verdict"] == "leave out"
    yield Promise("m, speeds 1, 1, 1, .02: verdict", proof["text"], "leave rank 3 out", kept)


def lab_speeds() -> Rows:
    with tempfile.TemporaryDirectory() as folder, built("unequal", UNEQUAL) as lab:
        machine = str(Path(folder, "machine.json"))
        inside(lab, "characterize", "-o", machine, capture=True)
        for level, cells in (("L2 cache", "2000"), ("L3 cache", "90000"), ("memory", "0")):
            how = ("--rule", "rate", "--cells", cells, "--json")
            found = off(fembench("weights", machine, *how, capture=True), [1, 0.25])
            what = f"lab, 100 % and 25 % of a CPU, data in the {level}: largest error"
            # a host with a quarter of the CPU time has less than a quarter of the caches
            if level == "memory":
                yield Promise(what, f"{found:.1%}", "")
            else:
                yield at_most(what, found, 0.1)


def lab() -> Rows:
    with built("unequal", UNEQUAL) as name:
        proof = tuned("l", "--ranks", "2", "--iterations", "30", lab=name)
    ratio, alone = proof["ratio"], (proof["without_seconds"] or float("nan")) / proof["weighted_seconds"]
    noise = f"A/A noise {proof['noise']:.1%}, {proof['pairs']} pairs"
    yield Promise("lab: equal over weighted", f"{ratio:.2f} ({noise})", ">= 1.8", ratio >= 1.8)
    kept = alone >= 1 or "less time than with these" in proof["text"]
    yield Promise("lab: fast host alone over weighted", f"{alone:.2f}", ">= 1, or the verdict", kept)
    yield Promise("lab: verdict", proof["text"], "")


def links() -> Rows:
    """A rank whose neighbours are on its own host does not wait for messages, so rule comm gives it a larger
    share."""
    mesh = ("box:24x48x24", "--ranks", "3", "--partitioner", "rcb", "--no-overlap", "--dilate", "16")
    fixed = ("--iterations", "40", "--sets", "3", "--json")
    with tempfile.TemporaryDirectory() as folder, built("row", ROW) as lab:

        def run(shares: str = "") -> tuple[float, Record]:
            more = ("--shares", shares) if shares else ()
            text = inside(lab, "run", *mesh, *fixed, *more, "--results", folder, capture=True)
            record = msgspec.json.decode(text, type=Record)
            return median(observe(record).total), record

        machine = str(Path(folder, "machine.json"))
        inside(lab, "characterize", "--ranks", "3", "--network", "--quick", "-o", machine, capture=True)
        first = run()[1]
        source = f"{folder}/runs/{first.id}.json"
        shares = {
            rule: fembench(
                "weights", source, "--rule", rule, *more, "--export", "shares", capture=True
            ).strip()
            for rule, more in (("time", ()), ("comm", ("--machine", machine)))
        }
        took: dict[str, list[float]] = {rule: [] for rule in shares}
        for turn in range(6):  # the fewest that give an interval; the order is reversed in every second turn
            for rule, text in list(shares.items())[:: -1 if turn % 2 else 1]:
                took[rule].append(run(text)[0])
    against = compare_paired(took["time"], took["comm"], noise=noise_of_series(took["time"]))
    gain, low, high = (1 - 1 / ratio for ratio in (against.ratio, *against.interval[:2]))
    found = f"{gain:.1%} (95 %: {low:.1%} to {high:.1%}; A/A noise {against.noise:.1%})"
    for rule, text in shares.items():
        yield Promise(f"rule {rule}: time per set", f"{median(took[rule]):.3f} s, shares {text}", "")
    yield Promise("rule comm against time: gain", found, "> 0", gain > 0)


GROUPS: dict[str, Callable[[], Rows]] = {
    "speeds": speeds, "two": two, "four": four, "equal": equal, "useless": useless,
    "lab-speeds": lab_speeds, "lab": lab, "links": links,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(GROUPS), metavar="PART,…", help="run only these parts")
    parser.add_argument("--json", metavar="FILE", help="write the rows to this file")
    options = parser.parse_args()
    rows = []
    for name in options.only.split(","):
        if name not in GROUPS:
            parser.error(f"--only {name}; expected some of {', '.join(GROUPS)}")
        print(f"== {name}", file=sys.stderr, flush=True)
        for row in GROUPS[name]():
            rows.append(row)
            print(f"{row.what}: {row.found} ({row.verdict})", file=sys.stderr, flush=True)
    return end(rows, file=options.json)


if __name__ == "__main__":
    sys.exit(main())
