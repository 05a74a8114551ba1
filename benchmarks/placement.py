"""Does `fembench place` choose the best placement? Measured in a lab of three hosts (root).

    python benchmarks/placement.py

The hosts have speeds 1, 0.5 and 0.25 and unequal links; the three parts are one, two and three sixths of the
mesh. The benchmark measures the hosts' profile, records a run in the default placement, lets `fembench place`
choose, and then runs all six placements in turns. It prints the time of each, and whether the chosen one is
within 3 % and the noise of the best. The exit status is 1 if it is not. It takes eighteen minutes.
"""

import argparse
import itertools
import json
import statistics
import sys
from pathlib import Path

from commands import Promise, built, end, fembench, inside

from fembench.base.tables import table
from fembench.base.units import seconds
from fembench.model.correct import measured
from fembench.model.placement import CandidateHost
from fembench.records.store import load_all
from fembench.workflows.command import rankfile

HOSTS = """
[[hosts]]
name = "fast"
cpus = [0]
[[hosts]]
name = "middle"
cpus = [1]
speed = 0.5
rate = "200mbit"
[[hosts]]
name = "slow"
cpus = [1]
speed = 0.25
rate = "100mbit"
"""
NAMES = ("fast", "middle", "slow")
PLACES = list(itertools.permutations(range(len(NAMES))))  # hosts of the parts
CASE = (
    *("box:2000000", "--ranks", "3", "--shares", "1:2:3"),  # large, because quotas have a period of 20 ms
    *("--storage", "ebe", "--iterations", "10", "--sets", "3"),
)
TURNS = 2  # runs of each placement
CLOSE = 0.03  # of the best


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--folder", default="results/placement", help="folder for all results (default: %(default)s)"
    )
    folder = Path(parser.parse_args().folder)
    folder.mkdir(parents=True, exist_ok=True)
    with built("placement", HOSTS) as lab:
        machine = str(folder / "machine.json")
        inside(lab, "characterize", "--quick", "--network", "-o", machine)
        chosen = choose(lab, folder, machine)
        for turn in range(TURNS):
            for place in PLACES[turn:] + PLACES[:turn]:
                run(lab, folder / word(place), place)
    return judge(folder, *chosen)


def choose(lab: str, folder: Path, machine: str) -> tuple[tuple[int, ...], float]:
    """The placement that `fembench place` chooses from a run in the default placement, and its predicted
    seconds."""
    inside(lab, "run", *CASE, "--results", str(folder / "default"))
    record = next((folder / "default").rglob("runs/*.json"))
    print(fembench("place", str(record), "--machine", machine, capture=True))
    said = json.loads(fembench("place", str(record), "--machine", machine, "--json", capture=True))
    return tuple(NAMES.index(host) for host in said["hosts"]), said["iteration_seconds"]


def run(lab: str, folder: Path, place: tuple[int, ...]) -> None:
    """One run of a placement."""
    folder.mkdir(exist_ok=True)
    ranks = folder / "ranks.txt"
    ranks.write_text(rankfile(place, [CandidateHost(name, 1, 1) for name in NAMES]))
    inside(lab, "run", *CASE, "--rankfile", str(ranks), "--results", str(folder))


def word(place: tuple[int, ...]) -> str:
    """A placement as tables show it."""
    return "-".join(NAMES[p] for p in place)


def judge(folder: Path, chosen: tuple[int, ...], promised: float) -> int:
    """Prints the times; 0 if the chosen placement is as good as the best."""
    took = {p: sorted(measured(r).iteration for r in load_all(folder / word(p))) for p in PLACES}
    middle = {p: statistics.median(times) for p, times in took.items()}
    best = min(middle, key=lambda p: middle[p])
    noise = max((took[p][-1] - took[p][0]) / middle[p] / 2 for p in (best, chosen))
    rows = [
        [word(p), *map(seconds, (middle[p], took[p][0], took[p][-1])), "chosen" if p == chosen else ""]
        for p in sorted(PLACES, key=lambda p: middle[p])
    ]
    print(table(["placement", "iteration", "from", "to", ""], rows, align="lrrrl"))
    off = middle[chosen] / middle[best] - 1
    print(f"predicted: {seconds(promised)}, {promised / middle[chosen] - 1:+.1%}")
    limit = f"<= {CLOSE:.0%} + half range {noise:.1%}"
    return end([Promise("chosen placement: above the best", f"{off:.1%}", limit, off <= CLOSE + noise)])


if __name__ == "__main__":
    sys.exit(main())
