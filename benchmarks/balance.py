"""What rebalancing costs and brings: overhead, gain, adaptivity, prediction; static weights beside it.

    python benchmarks/balance.py [--mesh l] [--only overhead,blocks,gain,change,weights] [--json]

Unequal machines are emulated (SYNTHETIC): ranks share the cores of this machine, dilated so that they fit
side by side. Compared runs take turns; times are medians over the sets of all turns of the slowest rank's CG.

    overhead  policy observe against none, and c = 1 blocks a rank against plain parts: one rank a core
    blocks    c = 1, 2, 4, 8 without balancing: one rank a core
    gain      speeds 0.5 1 1 1, c = 1, 2, 4; equal speeds: no move
    change    a rank slows by 3 in mid-run
    weights   static weights alone, balancing alone, both: on a static and on a changing cluster
    lab       two hosts of a lab, the CPU quota of one lowered in mid-run (needs root; only when it is named)
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import msgspec

from fembench.base.tables import table
from fembench.bench.launcher import launch, usable_cores
from fembench.machine import lab as machine_lab
from fembench.machine import lab_groups
from fembench.machine.lab_network import PREFIX
from fembench.records.case import Case
from fembench.records.record import Record
from fembench.records.store import load_all
from fembench.records.validity import cg_seconds
from fembench.report.balance import counted, prediction_errors

SPEEDS = (0.5, 1.0, 1.0, 1.0)


class Bench:
    """Runs cases in turns and keeps their records."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.base = Case(
            mesh=options.mesh, iterations=options.iterations, sets=1, warmups=1, trace_iterations=0
        )

    def case(self, **fields) -> Case:
        return msgspec.structs.replace(self.base, **fields)

    def emulated(self, **fields) -> Case:
        """Four ranks side by side on the cores of this machine."""
        dilate = round(1.2 * len(SPEEDS) / usable_cores() * self.options.stretch, 2)
        return self.case(ranks=len(SPEEDS), dilate=dilate, warmups=0, **fields)

    def run(self, cases: dict[str, Case], turns: int | None = None) -> dict[str, list[Record]]:
        """Records by name; one run of each case a turn."""
        found: dict[str, list[Record]] = {name: [] for name in cases}
        for turn, (name, case) in itertools.product(range(turns or self.options.turns), cases.items()):
            with tempfile.TemporaryDirectory() as scratch:
                outcome = launch(case, id=f"{name}-{turn}", command="benchmarks/balance.py",
                                 scratch=Path(scratch), timeout=120)  # fmt: skip
            if outcome.record is None:
                raise SystemExit(f"{name}: {outcome.message}\n{outcome.output}")
            print(f"  {name}: {cg_seconds(outcome.record)[-1]:.3f} s", file=sys.stderr, flush=True)
            found[name].append(outcome.record)
        return found


def seconds(records: list[Record]) -> float:
    return median(s for r in records for s in cg_seconds(r))


def ledgers(records: list[Record]) -> list:
    return [one for r in records if r.balance for _, one in counted(r.balance)]


def looks(records: list[Record]) -> list:
    return [look for ledger in ledgers(records) for look in ledger.looks]


def moves(records: list[Record]) -> float:
    """Moves of a set, median."""
    return median(sum(len(look.moves) for look in ledger.looks) for ledger in ledgers(records))


def overhead(bench: Bench) -> list[dict]:
    """One rank a core, nothing emulated."""
    ranks, sets = usable_cores(), bench.options.sets
    cases = {
        "parts": bench.case(ranks=ranks, sets=sets),
        "c = 1, none": bench.case(ranks=ranks, sets=sets, balance="none", blocks_per_rank=1),
        "c = 4, none": bench.case(ranks=ranks, sets=sets, balance="none", blocks_per_rank=4),
        "c = 4, observe": bench.case(ranks=ranks, sets=sets, balance="observe", blocks_per_rank=4),
    }
    found = bench.run(cases)
    pairs = (("c = 1, none", "parts"), ("c = 4, none", "c = 1, none"), ("c = 4, observe", "c = 4, none"))
    return [
        {"run": a, "against": b, "seconds": seconds(found[a]), "base": seconds(found[b]),
         "more %": 100 * (seconds(found[a]) / seconds(found[b]) - 1)}
        for a, b in pairs
    ]  # fmt: skip


def blocks(bench: Bench) -> list[dict]:
    ranks, sets = usable_cores(), bench.options.sets
    cases = {c: bench.case(ranks=ranks, sets=sets, balance="none", blocks_per_rank=c) for c in (1, 2, 4, 8)}
    found = bench.run({f"c = {c}": case for c, case in cases.items()})
    first = seconds(found["c = 1"])
    return [
        {"blocks a rank": name, "seconds": seconds(r), "more %": 100 * (seconds(r) / first - 1)}
        for name, r in found.items()
    ]


def optimum(c: int, speeds=SPEEDS) -> float:
    """Gain in % of the best assignment of 4 c equal blocks over c on each rank."""
    v = c * len(speeds)
    times = sorted(k / s for s in speeds for k in range(1, v + 1))
    best = next(t for t in times if sum(int(t * s + 1e-9) for s in speeds) >= v)
    return 100 * (1 - best / (c / min(speeds)))


def gain(bench: Bench) -> list[dict]:
    slow = ",".join(f"{s:g}" for s in SPEEDS)
    rows = []
    for name, emulate, counts in (("0.5 1 1 1", slow, (1, 2, 4)), ("equal", "1,1,1,1", (4,))):
        for c in counts:
            cases = {
                policy: bench.emulated(emulate=emulate, balance=policy, blocks_per_rank=c)
                for policy in ("none", bench.options.policy)
            }
            found = bench.run(cases)
            still, moved = found["none"], found[bench.options.policy]
            errors = [e for ledger in ledgers(moved) for e in prediction_errors(ledger)]
            rows.append(
                {"speeds": name, "blocks a rank": c, "none s": seconds(still), "balanced s": seconds(moved),
                 "gain %": 100 * (1 - seconds(moved) / seconds(still)),
                 "optimum %": optimum(c) if emulate == slow else 0.0, "moves": moves(moved),
                 "prediction off, median %": 100 * median(errors) if errors else None}
            )  # fmt: skip
    return rows


def change(bench: Bench) -> list[dict]:
    """A rank slows by 3 in mid-run: the iteration look by look after it, against the new optimum."""
    at = bench.options.iterations // 3 // 10 * 10
    slows = {"emulate": "1,1,1,1", "emulate_change": f"{at}:0.333,1,1,1", "blocks_per_rank": 4}
    found = bench.run({p: bench.emulated(balance=p, **slows) for p in ("none", bench.options.policy)}, 1)
    moved = found[bench.options.policy]
    (ledger,) = ledgers(moved)[-1:]
    before = median(k.superstep for k in ledger.looks if k.iteration <= at)
    new = before * (1 - optimum(4, (1 / 3, 1, 1, 1)) / 100) * 3
    after = [look for look in ledger.looks if look.iteration > at]
    rows = [
        {"look": n, "iteration": k.iteration, "seconds an iteration": k.superstep, "new optimum": new,
         "over it %": 100 * (k.superstep / new - 1), "moves": len(k.moves)}
        for n, k in enumerate(after[:8], 1)
    ]  # fmt: skip
    none, best = seconds(found["none"]), seconds(moved)
    return [*rows, {"look": "run", "seconds an iteration": best, "new optimum": none,
                    "over it %": 100 * (best / none - 1), "moves": moves(moved)}]  # fmt: skip


def weights(bench: Bench) -> list[dict]:
    """The same job four ways on two clusters; the cluster that changes swaps its slow rank in mid-run."""
    half = bench.options.iterations // 2 // 10 * 10
    slow = ",".join(f"{s:g}" for s in SPEEDS)
    clusters = {
        "static": {"emulate": slow},
        "changing": {"emulate": "1,1,1,1", "emulate_change": f"1:{slow};{half}:1,1,1,0.5"},
    }
    rows = []
    for cluster, fields in clusters.items():
        cases = {
            f"{way}": bench.emulated(blocks_per_rank=4, shares=shares, balance=policy, **fields)
            for way, shares, policy in (
                ("nothing", "", "none"),
                ("static weights", "1:2:2:2", "none"),
                ("balancing", "", bench.options.policy),
                ("both", "1:2:2:2", bench.options.policy),
            )
        }
        found = bench.run(cases)
        best = min(found, key=lambda name: seconds(found[name]))
        rows += [
            {"cluster": cluster, "way": name, "seconds": seconds(r),
             "gain %": 100 * (1 - seconds(r) / seconds(found["nothing"])), "moves": moves(r),
             "winner": "<" if name == best else ""}
            for name, r in found.items()
        ]  # fmt: skip
    return rows


LAB = """name = "balance"
[[hosts]]
name = "steady"
cpus = [{first}]
[[hosts]]
name = "slowing"
cpus = [{second}]
"""
QUOTA = 0.35  # of its CPU that the host has left
MOMENT = 9.0  # seconds after the start of a run: the solve is under way


def lab(bench: Bench) -> list[dict]:
    """Weights from before (equal hosts) are equal shares: they are run under their own name all the same."""
    rounds = str(bench.options.iterations * 10)
    common = ("--iterations", rounds, "--sets", "1", "--warmups", "0", "--trace-iterations", "0")
    ways = {
        "nothing": ("--balance", "none"),
        "static weights from before": ("--shares", "1:1"),
        "balancing": ("--balance", bench.options.policy, "--look-every", "20"),
    }
    rows = []
    for name, options in ways.items():
        record = in_lab([bench.options.mesh, "--ranks", "2", *common, *options])
        took = cg_seconds(record)[-1]
        one = counted(record.balance)[-1][1] if record.balance else None
        rows.append(
            {
                "way": name,
                "cg s": took,
                "moves": sum(len(k.moves) for k in one.looks) if one else 0,
                "blocks at the end": str(one.owner.count(0)) + " / " + str(one.owner.count(1)) if one else "",
                "looks and moves s": sum(k.cost for k in one.looks) if one else None,
            }
        )
        print(f"  {name}: {took:.2f} s", file=sys.stderr, flush=True)
    return rows


def in_lab(arguments: list[str]) -> Record:
    """The record of one run in a fresh lab, whose second host slows at MOMENT."""
    me = [sys.executable, "-m", "fembench"]
    with tempfile.TemporaryDirectory() as scratch:
        cluster = Path(scratch, "lab.toml")
        trees = lab_groups.hierarchies()
        first, second = lab_groups.usable_cpus(trees)[:2]
        cluster.write_text(LAB.format(first=first, second=second))
        state = machine_lab.up(cluster)
        try:
            inner = [*me, "run", *arguments, "--results", scratch]
            job = subprocess.Popen([*me, "lab", "run", "--name", state.cluster.name, *inner],
                                   stdout=subprocess.DEVNULL)  # fmt: skip
            time.sleep(MOMENT)
            slow_down(state.cluster.name, "slowing", trees)
            job.wait(200)
        finally:
            machine_lab.down(state.cluster.name)
        return load_all(scratch)[0]


def slow_down(name: str, host: str, trees: list) -> None:
    """Lower the CPU quota of a running host."""
    quota, period = lab_groups.quota_and_period(QUOTA)
    for tree in (t for t in trees if "cpu" in t.controllers):
        group = tree.mount / f"{PREFIX}{name}" / host
        if tree.version == 2:
            (group / "cpu.max").write_text(f"{quota} {period}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(period))
            (group / "cpu.cfs_quota_us").write_text(str(quota))


GROUPS = {"overhead": overhead, "blocks": blocks, "gain": gain, "change": change, "weights": weights}
ROOTS = {"lab": lab}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mesh", default="l")
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--sets", type=int, default=5, help="timed sets of a run that is not emulated")
    parser.add_argument("--stretch", type=float, default=1.0, help="dilate emulated ranks so much more")
    parser.add_argument("--policy", default="amortised")
    parser.add_argument("--only", default=",".join(GROUPS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = {}
    groups = GROUPS | ROOTS
    for name in options.only.split(","):
        print(name, file=sys.stderr)
        result[name] = groups[name](Bench(options))
        if not options.json:
            heads = list(result[name][0])
            print(f"\n{name}: {groups[name].__doc__ or name}\n")
            print(table(heads, [[row.get(h) for h in heads] for row in result[name]]), flush=True)
    if options.json:
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
