"""Are the verdicts of `fembench compare` right, and are it and `fembench history` fast on many records?

    python benchmarks/compare.py [--pairs N] [--records N] [--seed N] [--json FILE] [--keep DIR]

The results are planted: records of four cases, five runs each, as a campaign with `repetitions = 5` leaves
them. Runs scatter as on a real machine: all times of a run share one factor (1 %), each of its phases has
another one (0.5 %), a round of runs shares a third one (0.5 %), one run in ten is 4 % slower, and sets
scatter by 2 %. The targets: at most one of twenty equal pairs gets a verdict other than 'no difference
shown', for any case or for the geometric mean; a slowdown of 5 %, planted in one phase, is found in 19 of
20, and that phase is named.

Then 10 000 records are planted, of 20 cases on 500 nights, 25 kB each: the wall time of `fembench history`
is at most 10 s, and that of `fembench compare` of the even and the odd nights, which judges every record by
all rules, at most 60 s. A longer time is not judged if other programs used the processors. The exit status
is 1 if a target is not met or not judged. Two minutes.

--keep only writes a pair of results, DIR/old and DIR/new, in which the product of CG is 5 % slower.
"""

import argparse
import datetime
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from commands import FEMBENCH, Promise, at_most, disturbance, end

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from planted_records import nested, planted

from fembench.base.config import json_text
from fembench.records import phases as ph
from fembench.records.record import Record
from fembench.records.store import save
from fembench.records.validity import judge
from fembench.report.comparison import SHOWN, Compared, SideRuns, compared

CASES = ({}, {"precond": "jacobi"}, {"storage": "csr"}, {"ranks": 2})
RUN, PHASE, ROUND, SLOW, SETS = 0.01, 0.005, 0.005, 1.04, 0.02
RUNS, SLOWER = 5, 1.05
RANKS, ITERATIONS = (1, 2), (100, 200, 300, 400, 500)  # of the records of many nights
HISTORY, COMPARE = 10.0, 60.0  # seconds of wall time for all of them
PLANTED = {"product": ph.PRODUCT_PARTS, "assembly": (ph.ASSEMBLY,)}


def scattered(record: Record, rng: np.random.Generator, round: float, slower: dict[int, float]) -> Record:
    """The record as another run would leave it; `slower`: factors of phases."""
    factors = np.exp(PHASE * rng.standard_normal(len(ph.NAMES)) + RUN * rng.standard_normal()) * round
    factors *= SLOW if rng.random() < 0.1 else 1.0
    for phase, factor in slower.items():
        factors[phase] *= factor
    sets = []
    for one in record.sets:
        seconds = np.array(one.seconds) * factors * np.exp(SETS * rng.standard_normal())
        seconds[:, ph.CG] = seconds[:, list(ph.CG_PARTS)].sum(axis=1)
        sets.append(msgspec.structs.replace(one, seconds=nested(seconds)))
    return msgspec.structs.replace(record, sets=tuple(sets))


def campaign(models: list[Record], name: str, rng: np.random.Generator, slower: dict[int, float]) -> SideRuns:
    """The runs of all cases, in rounds."""
    records = []
    for k in range(RUNS):
        round = np.exp(ROUND * rng.standard_normal())
        for number, model in enumerate(models):
            run = scattered(model, rng, round, slower)
            created = f"2026-01-02T03:{k:02d}:{number:02d}+00:00"
            records.append(msgspec.structs.replace(run, id=f"{name}-{number}-{k}", created=created))
    return SideRuns(name, records)


def false_verdicts(found: Compared) -> int:
    """Verdicts of equal cases, or of their mean, that are a difference."""
    phases = map(found.said, found.parts.values())
    return sum(said in SHOWN for said in (found.verdict, *phases, *(p.verdict for p in found.pairs)))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=20, metavar="N", help="of each kind (default: 20)")
    parser.add_argument(
        "--records", type=int, default=10_000, metavar="N", help="of many nights (default: 10000; 0: none)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the scatter (default: 1)")
    parser.add_argument("--json", metavar="FILE", help="write what was found to this file")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write a pair of results, and end")
    options = parser.parse_args()
    rng, n = np.random.default_rng(options.seed), options.pairs
    models = [planted((1.0,) * case.get("ranks", 1), noise=0.0, **case_of(case)) for case in CASES]
    if options.keep:
        keep(options.keep, models, rng)
        return 0
    wrong, found, named = 0, 0, 0
    for k in range(n):
        base = campaign(models, "base", rng, {})
        wrong += false_verdicts(compared(base, campaign(models, "equal", rng, {}))) > 0
        name, phases = list(PLANTED.items())[k % len(PLANTED)]
        slow = compared(base, campaign(models, "slow", rng, dict.fromkeys(phases, SLOWER)))
        told = [name for name, ratio in slow.parts.items() if slow.said(ratio) == "slower"]
        found += bool(told)
        named += told == [name]
    most, least = n // 20, n - n // 20
    return end(
        [
            *(timed(options.records, rng) if options.records else ()),
            Promise("equal results: false verdicts", f"{wrong} of {n}", f"<= {most}", wrong <= most),
            Promise("one phase 5 % slower: found", f"{found} of {n}", f">= {least}", found >= least),
            Promise("and that phase named", f"{named} of {n}", f">= {least}", named >= least),
        ],
        file=options.json,
    )


def timed(n: int, rng: np.random.Generator) -> Iterator[Promise]:
    """Wall times on many records."""
    with tempfile.TemporaryDirectory() as scratch:
        size = plant_nights(Path(scratch), n, rng) / n
        print(f"{n} records of {size / 1e3:.1f} kB", file=sys.stderr)
        for words, limit in ((["history", "."], HISTORY), (["compare", "even", "odd"], COMPARE)):
            others, start = disturbance(), time.perf_counter()
            subprocess.run([*FEMBENCH, *words], cwd=scratch, stdout=subprocess.DEVNULL, check=True)
            found = at_most(f"{words[0]} of {n} records", time.perf_counter() - start, limit, ".1f")
            if not found.kept and (why := others()):  # which makes no time shorter
                print(f"{found.what}: not judged: {why}", file=sys.stderr)
                found = found._replace(undecided="INVALID")
            yield found._replace(found=f"{found.found} s", limit=f"{found.limit} s")


def plant_nights(folder: Path, n: int, rng: np.random.Generator) -> int:
    """Write n records: each case once per night, in the folders even and odd. Returns their bytes."""
    made = [
        planted((1.0,) * ranks, noise=0.0, sets=10, warmups=2, iterations=iterations, **method)
        for ranks in RANKS
        for iterations in ITERATIONS
        for method in ({}, {"precond": "jacobi"})
    ]
    models = [msgspec.structs.replace(record, verdict=judge(record)) for record in made]
    sides = [folder / name / "runs" for name in ("even", "odd")]
    for side in sides:
        side.mkdir(parents=True)
    size = 0
    for k in range(n):
        night, number = divmod(k, len(models))
        date = datetime.date(2024, 1, 1) + datetime.timedelta(days=night)
        commit = msgspec.structs.replace(models[number].environment, commit=f"c{night // 8}")
        facts = {"id": f"{number}-{night}", "created": f"{date}T03:00:{number:02d}+00:00"}
        record = scattered(models[number], rng, 1.0, {})
        text = json_text(msgspec.structs.replace(record, environment=commit, **facts))
        size += (sides[night % 2] / f"{record.id}-{k}.json").write_text(text)
    return size


def keep(folder: Path, models: list[Record], rng: np.random.Generator) -> None:
    """Write the runs of both sides."""
    for name, factor in (("old", 1.0), ("new", SLOWER)):
        (folder / name / "runs").mkdir(parents=True)
        for record in campaign(models, name, rng, dict.fromkeys(PLANTED["product"], factor)).records:
            save(record, folder / name / "runs")


def case_of(case: dict) -> dict:
    return {name: value for name, value in case.items() if name != "ranks"}


if __name__ == "__main__":
    sys.exit(main())
