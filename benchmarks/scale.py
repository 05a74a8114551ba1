"""Does fembench itself scale? Records and predictions of very many ranks, planted, on one core.

    python benchmarks/scale.py [--ranks 10000] [--json FILE]

A record of 20 sets: its size, and the time of reading and judging it, of `report`, `weights` and `check`. The
simulation of 1000 iterations of CG on ranks of different speeds, each with fourteen neighbours, all-reduces
included. Targets hold for 10 000 ranks; the exit status is 1 if one is not met. Two minutes.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from commands import Promise, at_most, end, fembench

from fembench.model.cg import Price, cg_graph
from fembench.model.engine import simulate
from fembench.model.machine import Machine
from fembench.model.planner import make_plan
from fembench.records.store import load, save

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from planted_machine import flat_class
from planted_scale import ITERATIONS, host_numbers, planted_large, planted_workload

LARGEST = 20.0  # MB
LOADING, VERB, SIMULATION = 1.0, 10.0, 10.0  # seconds


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=10_000, help="ranks (default 10000)")
    parser.add_argument("--json", metavar="FILE", help="also write results as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        promises = [*of_record(options.ranks, Path(folder)), of_simulation(options.ranks)]
    return end(promises, file=options.json)


def of_record(ranks: int, folder: Path) -> list[Promise]:
    """Size and times of one record."""
    runs = folder / "runs"
    runs.mkdir()
    path = save(planted_large(ranks), runs)
    load(path)  # modules are imported now
    found = [
        at_most("size of the record, MB", path.stat().st_size / 1e6, LARGEST, ".1f"),
        at_most("reading and judging it, s", timed(lambda: load(path)), LOADING, ".2f"),
    ]
    for words in (["report"], ["weights", "-o", str(folder / "weights.json")], ["check"]):
        seconds = timed(lambda words=words: fembench(words[0], str(folder), *words[1:]))
        found.append(at_most(f"{words[0]}, start included, s", seconds, VERB, ".1f"))
    return found


def of_simulation(ranks: int) -> Promise:
    """The time from prices to the simulated makespan."""
    rng, host = np.random.default_rng(0), host_numbers(ranks)
    near, far = flat_class("same host", 3e-7, 5e-7, 1e-10), flat_class("others")
    machine = Machine(
        host=host,
        names=tuple(f"node{k:04d}" for k in range(host[-1] + 1)),
        link=lambda a, b: near if a == b else far,
        speeds=(1.0,) * ranks,
    )
    prices = [
        Price(assembly=1e-3, product=1e-4 * each, updates=5e-5, loop=1e-6, dot=1e-6)
        for each in rng.uniform(1, 1.1, ranks)
    ]
    work = planted_workload(ranks)
    seconds = timed(lambda: simulate(make_plan(cg_graph(work, prices, ITERATIONS), machine)))
    return at_most(f"simulation of {ITERATIONS} iterations, s", seconds, SIMULATION, ".1f")


def timed(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
