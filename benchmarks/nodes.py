"""Does `fembench nodes` find the slow nodes, and no others? Emulated nodes, and planted records of many.

    python benchmarks/nodes.py [--quick] [--json FILE]

    unequal   eight nodes emulated on this machine: one at 0.85 of the speed, one with 0.7 of the memory
              bandwidth, one with another load for 30 % of the time
    equal     eight equal nodes, emulated in the same way
    planted   made-up samples of 500 nodes of 16 cores, of which three are slow in these ways, or none is; the
              record is read and analysed again, start of the command included

The targets: in at least nine of ten measurements, each slow node is named with its cause, and no other is;
in at least nine of ten, no equal node is called slow; and 500 nodes take at most 10 seconds. The exit status
is 1 if a target is not met.

Unequal and equal nodes are measured alternately, ten times each. Run it on an idle machine: it takes about
four minutes on two cores. --quick measures twice: it shows gross errors and proves little.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from commands import Promise, end, fembench

from fembench.base.tables import table
from fembench.records.nodes import save_nodes

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from planted_nodes import Planted, planted_nodes

TIMES, QUICK = 10, 2
MANY, RANKS = 500, 16
LONGEST = 10.0  # seconds for MANY nodes
EMULATED = {"unequal": "1,1,1,1,1,0.85,1:0.7,1:1:0.3", "equal": "1,1,1,1,1,1,1,1"}
CAUSES = ("all cores slow", "memory slow, cores normal", "another load")  # beginnings, in the order of nodes
WAYS = ("at 0.85 of the speed", "memory alone at 0.7", "another load for 30 %")
SLOW = (
    Planted(cores=0.85, clock=0.85),
    Planted(memory=0.7),
    Planted(load=0.3, host={"others_percent": 30.0}),
)
PLANTED_AT = (60, 240, 433)
HEADS = ["nodes", "slow", "right", "duration"]


@dataclass(frozen=True)
class Found:
    """What one measurement found."""

    what: str  # "unequal", "equal", "500 unequal", "500 equal"
    expected: dict[str, str]  # {slow node: beginning of its cause}
    slow: dict[str, str]  # {node called slow: cause}
    seconds: float

    @property
    def right(self) -> bool:
        """Whether all slow nodes are named with their causes, and no others."""
        return set(self.slow) == set(self.expected) and all(map(self.named, self.expected))

    def named(self, node: str) -> bool:
        """Whether this slow node is named with its cause."""
        return self.slow.get(node, "").startswith(self.expected[node])


def judge(what: str, expected: dict[str, str], findings: str, seconds: float) -> Found:
    """From the output of `fembench nodes --json`."""
    nodes = json.loads(findings)["nodes"]
    slow = {node["name"]: node["cause"] for node in nodes if node["verdict"] == "slow"}
    return Found(what, expected, slow, seconds)


def emulated(kind: str, folder: str) -> Found:
    """A new measurement of eight nodes."""
    expected = dict(zip(("node6", "node7", "node8"), CAUSES)) if kind == "unequal" else {}
    begin = time.monotonic()
    printed = fembench("nodes", "--emulate", EMULATED[kind], "--results", folder, "--json", capture=True)
    return judge(kind, expected, printed, time.monotonic() - begin)


def planted(kind: str, seed: int, folder: str) -> Found:
    """The analysis of a made-up record."""
    changes = dict(zip(PLANTED_AT, SLOW)) if kind == "unequal" else {}
    expected = {f"n{k + 1}": cause for k, cause in zip(changes, CAUSES)}
    path = Path(folder, f"{kind}-{seed}.json")
    save_nodes(planted_nodes(MANY, changes, ranks=RANKS, seed=seed), path)
    begin = time.monotonic()
    printed = fembench("nodes", str(path), "--json", capture=True)
    return judge(f"{MANY} {kind}", expected, printed, time.monotonic() - begin)


def measurements(times: int, folder: str) -> Iterator[Found]:
    """Unequal and equal nodes in turns."""
    for _ in range(times):
        for kind in EMULATED:
            yield emulated(kind, folder)
    for seed in range(times):
        for kind in EMULATED:
            yield planted(kind, seed, folder)


def row(found: Found) -> list[str]:
    """A row of the table."""
    slow = "; ".join(f"{name}: {cause}" for name, cause in found.slow.items()) or "none"
    return [found.what, slow, "yes" if found.right else "NO", f"{found.seconds:.1f} s"]


def promises(found: Sequence[Found]) -> list[Promise]:
    """For each kind of nodes, and for the duration."""
    rows = []
    for what in dict.fromkeys(one.what for one in found):
        of_kind = [one for one in found if one.what == what]
        n = len(of_kind)
        least = n - n // 10
        parts = {
            f"{what}: {way}: named with its cause": sum(one.named(name) for one in of_kind)
            for way, name in zip(WAYS, of_kind[0].expected)
        }
        whole = "all slow nodes, and no others" if parts else "no node called slow"
        parts[f"{what}: {whole}"] = sum(one.right for one in of_kind)
        rows += [Promise(name, f"{k} of {n}", f">= {least}", k >= least) for name, k in parts.items()]
    longest = max((one.seconds for one in found if one.what.startswith(str(MANY))), default=0.0)
    quick, limit = longest <= LONGEST, f"<= {LONGEST:g} s"
    return [*rows, Promise(f"{MANY} nodes: longest analysis", f"{longest:.1f} s", limit, quick)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two measurements of each kind; proves little")
    parser.add_argument("--json", metavar="FILE", help="write all measurements to this file")
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for one in measurements(QUICK if options.quick else TIMES, folder):
            found.append(one)
            print(" | ".join(row(one)), file=sys.stderr, flush=True)
    print(table(HEADS, [row(one) for one in found], align="lllr"))
    print(f"\ntotal: {sum(one.seconds for one in found):.0f} s")
    if options.quick:
        print("--quick: two measurements of each kind show gross errors only; run without it for the proof")
    return end(promises(found), file=options.json, measurements=[asdict(one) for one in found])


if __name__ == "__main__":
    sys.exit(main())
