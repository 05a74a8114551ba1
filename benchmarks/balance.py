"""Costs and gains of rebalancing: overhead, gain, adaptivity, prediction; static weights for comparison.

    python benchmarks/balance.py [--only overhead,blocks,gain,still,change,weights,policies] [--json FILE]

The compared solves alternate in one job (balance_turns.py), so that disturbances of the machine affect all of
them alike. A ratio is the median over turns of the ratios within a turn, given with their minimum and
maximum; noise is the difference of the base from itself, one turn compared with the next. Times are those of
CG on the slowest rank. Unequal hosts are emulated (SYNTHETIC): four ranks share the cores of this machine,
dilated so that all have time to compute. Each part takes two to five minutes on two cores.

    overhead  c = 1 block per rank compared with plain parts, c = 4 with c = 1, policy observe with none
    blocks    c = 1, 2, 4, 8 blocks per rank without balancing
    gain      speeds 0.5 1 1 1, c = 2, 4
    still     nothing to gain: one block per rank, or equal speeds
    change    a rank becomes three times slower in mid-run
    weights   static weights alone, balancing alone, both: on a static and on a changing cluster
    policies  the recommended policy against others: a slow rank, equal ranks, a rank that becomes slow
    lab       two hosts of a lab, the CPU time of one reduced in mid-run (root; half an hour; runs only if it
              is named)

A table at the end compares the promises with what was measured. A promise is not decidable if the noise is
larger than the distance between its target and the ideal. The exit status is 1 if a promise is not met or
not decidable.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import msgspec
from balance_turns import Solved, Turns
from commands import FEMBENCH, Promise, built, end

from fembench.base.tables import table
from fembench.host.host import usable_cores
from fembench.launch.line import environment, job_line
from fembench.launch.run_job import run_job
from fembench.records.case import Case
from fembench.records.phases import CG
from fembench.records.record import Record
from fembench.records.store import load_all
from fembench.records.times import Times
from fembench.report.balance_tables import counted, prediction_errors
from fembench.stats.compare import noise_of_series
from fembench.synthetic import lab as machine_lab
from fembench.synthetic import lab_groups

HERE = Path(__file__).resolve().parent
SPEEDS = (0.5, 1.0, 1.0, 1.0)
SLOW = ",".join(f"{s:g}" for s in SPEEDS)
EQUAL = "1,1,1,1"
Found = dict[str, Solved]


class Bench:
    """Makes cases and runs them in turns."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options

    def case(self, mesh: str, iterations: int, **fields) -> Case:
        return Case.of(
            mesh=self.options.mesh or mesh,
            iterations=self.options.iterations or iterations,
            sets=1,
            warmups=0,
            trace_iterations=0,
            **fields,
        )

    def emulated(self, mesh: str = "l", iterations: int = 300, **fields) -> Case:
        """Four ranks on the cores of this machine, dilated so that all have time to spare and the naps of
        waiting ranks are short compared with an iteration."""
        dilate = round(5 * len(SPEEDS) / usable_cores() * self.options.stretch, 2)
        more = {"first_look": 1} if fields.get("balance") else {}
        return self.case(mesh, iterations, ranks=len(SPEEDS), dilate=dilate, **more, **fields)

    def run(self, cases: dict[str, Case], turns: int, warmups: int = 0) -> Found:
        """The results of the cases, solved in turns by one job."""
        job = Turns(cases, self.options.turns or turns, warmups)
        ranks = next(iter(cases.values())).placement.ranks
        line = job_line(ranks)
        program = (str(HERE / "balance_turns.py"),)
        variables = environment(line, asleep=ranks > usable_cores())
        end = run_job(program, job, line, variables, timeout=900.0)
        if end.result is None:
            raise SystemExit(f"{end.message}\n{end.output}")
        return msgspec.json.decode(end.result, type=Found)


def against(found: Found, name: str, base: str) -> dict:
    """Columns that show how much longer `name` takes than `base`."""
    a, b = found[name].seconds, found[base].seconds
    more = sorted(100 * (x / y - 1) for x, y in zip(a, b))
    return {
        "seconds": median(a),
        "base": median(b),
        "more %": median(more),
        "from": more[0],
        "to": more[-1],
        "noise %": 100 * noise_of_series(b),
        "turns": len(a),
    }


def gained(found: Found, name: str, base: str) -> dict:
    """The same as a gain."""
    columns = against(found, name, base)
    return {"seconds": columns["seconds"], "base": columns["base"], "gain %": -columns["more %"],
            "from": -columns["to"], "to": -columns["from"], "noise %": columns["noise %"],
            "turns": columns["turns"]}  # fmt: skip


def bill(solved: Solved) -> dict:
    """Number of moves of a solve, and the cost of looks and moves; medians."""
    looks = [ledger.looks for ledger in solved.ledgers]
    return {
        "moves": median(sum(len(look.moves) for look in one) for one in looks),
        "looks s": median(sum(look.look_seconds for look in one) for one in looks),
        "moves s": median(sum(look.move_seconds for look in one) for one in looks),
    }


def overhead(bench: Bench) -> list[dict]:
    """One rank per core, without emulation."""
    cores = usable_cores()
    common = {"mesh": "l", "iterations": 100, "ranks": cores}
    cases = {
        "parts": bench.case(**common),
        "c = 1, none": bench.case(**common, balance="none", blocks_per_rank=1),
        "c = 4, none": bench.case(**common, balance="none", blocks_per_rank=4),
        "c = 4, observe": bench.case(**common, balance="observe", blocks_per_rank=4),
    }
    found = bench.run(cases, turns=12, warmups=1)
    pairs = (("c = 1, none", "parts"), ("c = 4, none", "c = 1, none"), ("c = 4, observe", "c = 4, none"))
    return [
        {"run": a, "against": b, **against(found, a, b),
         "looks %": 100 * bill(found[a])["looks s"] / median(found[a].seconds) if found[a].ledgers else None}
        for a, b in pairs
    ]  # fmt: skip


def blocks(bench: Bench) -> list[dict]:
    """The cost of more blocks."""
    common = {"mesh": "l", "iterations": 100, "ranks": usable_cores(), "balance": "none"}
    cases = {f"c = {c}": bench.case(**common, blocks_per_rank=c) for c in (1, 2, 4, 8)}
    found = bench.run(cases, turns=12, warmups=1)
    return [{"blocks per rank": name, **against(found, name, "c = 1")} for name in list(cases)[1:]]


def optimum(c: int, speeds=SPEEDS) -> float:
    """Gain in % of the best assignment of 4 c equal blocks over c on each rank."""
    v = c * len(speeds)
    times = sorted(k / s for s in speeds for k in range(1, v + 1))
    best = next(t for t in times if sum(int(t * s + 1e-9) for s in speeds) >= v)
    return 100 * (1 - best / (c / min(speeds)))


def gain(bench: Bench) -> list[dict]:
    """Whole solves, cost included; the optimum assigns whole blocks from the first iteration on."""
    return balanced(bench, [("0.5 1 1 1", SLOW, 2), ("0.5 1 1 1", SLOW, 4)])


def still(bench: Bench) -> list[dict]:
    """There is nothing to gain: what does the balancer do?"""
    return balanced(bench, [("0.5 1 1 1", SLOW, 1), ("equal", EQUAL, 4)])


def balanced(bench: Bench, jobs: list[tuple[str, str, int]]) -> list[dict]:
    """Each of `jobs`, (name, speeds, blocks per rank), with and without the balancer."""
    policy, cases = bench.options.policy, {}
    for name, emulate, c in jobs:
        for way in ("none", policy):
            cases[f"{name}, c = {c}, {way}"] = bench.emulated(emulate=emulate, balance=way, blocks_per_rank=c)
    found = bench.run(cases, turns=4, warmups=1)
    rows = []
    for name, emulate, c in jobs:
        moved = f"{name}, c = {c}, {policy}"
        errors = [e for ledger in found[moved].ledgers for e in prediction_errors(ledger)]
        rows.append(
            {"speeds": name, "blocks per rank": c, **gained(found, moved, f"{name}, c = {c}, none"),
             "optimum %": optimum(c) if emulate == SLOW else 0.0, **bill(found[moved]),
             "prediction off, median %": 100 * median(errors) if errors else None}
        )  # fmt: skip
    return rows


def change(bench: Bench) -> list[dict]:
    """A rank becomes three times slower in mid-run: each look after that, medians over the turns."""
    policy, iterations = bench.options.policy, bench.options.iterations or 300
    at = iterations // 3 // 10 * 10
    slows = {"emulate": EQUAL, "emulate_change": f"{at}:0.333,1,1,1", "blocks_per_rank": 4}
    found = bench.run(
        {way: bench.emulated(balance=way, **slows) for way in ("none", policy)}, turns=6, warmups=1
    )
    ledgers = found[policy].ledgers
    before = median(look.superstep for one in ledgers for look in one.looks if look.iteration <= at)
    new = before * (1 - optimum(4, (1 / 3, 1, 1, 1)) / 100) * 3
    after = [[look for look in one.looks if look.iteration > at] for one in ledgers]
    rows = []
    for k in range(min(8, min(map(len, after)))):
        steps = [looks[k].superstep for looks in after]
        over = sorted(100 * (step / new - 1) for step in steps)
        rows.append(
            {"look": k + 1, "after iteration": median(looks[k].iteration for looks in after),
             "s per iteration": median(steps), "new optimum": new, "over it %": median(over), "from": over[0],
             "to": over[-1], "moves": median(len(looks[k].moves) for looks in after)}
        )  # fmt: skip
    total = gained(found, policy, "none")
    rows = [row | {"noise %": total["noise %"]} for row in rows]
    print(f"  whole solve: {total['base']:.2f} s without moves, {total['seconds']:.2f} s with them, gain "
          f"{total['gain %']:.1f} % (noise {total['noise %']:.1f} %)", file=sys.stderr)  # fmt: skip
    return rows


def weights(bench: Bench) -> list[dict]:
    """The same job done in four ways on two clusters; in the changing cluster, another rank becomes slow in
    mid-run. The shortest time is marked, and all within its noise; three turns prove no difference."""
    iterations = bench.options.iterations or 600
    half = iterations // 2 // 10 * 10
    clusters = {
        "static": {"emulate": SLOW},
        "changing": {"emulate": EQUAL, "emulate_change": f"1:{SLOW};{half}:1,1,1,0.5"},
    }
    ways = {
        "nothing": ("", "none"),
        "static weights": ("1:2:2:2", "none"),
        "balancing": ("", bench.options.policy),
        "both": ("1:2:2:2", bench.options.policy),
    }
    cases = {
        f"{cluster}, {way}": bench.emulated(
            "box:60x30x60", iterations, blocks_per_rank=4, shares=shares, balance=policy, **fields
        )
        for cluster, fields in clusters.items()
        for way, (shares, policy) in ways.items()
    }
    found = bench.run(cases, turns=3, warmups=1)
    rows = []
    for cluster in clusters:
        names = [f"{cluster}, {way}" for way in ways]
        four = [gained(found, name, names[0]) for name in names]
        enough = max(columns["gain %"] for columns in four) - four[0]["noise %"]
        rows += [
            {"cluster": cluster, "way": way, **columns, **bill(found[name]),
             "shortest": "<" if columns["gain %"] >= enough else ""}
            for way, name, columns in zip(ways, names, four)
        ]  # fmt: skip
    return rows


OTHERS = ("greedy-comm", "refine-comm", "rcb", "migbsp++")


def policies(bench: Bench) -> list[dict]:
    """Whole solves, cost included, with each policy; the best and all within 5 % of it are marked."""
    iterations, policy = bench.options.iterations or 300, bench.options.policy
    at = iterations // 3 // 10 * 10
    scenarios = {
        "a slow rank": {"emulate": SLOW},
        "equal ranks": {"emulate": EQUAL},
        "a rank slows": {"emulate": EQUAL, "emulate_change": f"{at}:0.333,1,1,1"},
    }
    rows = []
    for scenario, fields in scenarios.items():
        cases = {
            name: bench.emulated("m", balance=name, blocks_per_rank=4, **fields)
            for name in dict.fromkeys(("none", policy, *OTHERS))
        }
        found = bench.run(cases, turns=3, warmups=1)
        each = {name: gained(found, name, "none") for name in cases}
        best = max(columns["gain %"] for columns in each.values())
        for name, columns in each.items():
            behind = 100 * ((100 - columns["gain %"]) / (100 - best) - 1)
            rows.append(
                {"scenario": scenario, "policy": name, **columns, **bill(found[name]),
                 "behind the best %": behind, "best": "<" if behind <= MOST_BEHIND else ""}
            )  # fmt: skip
    return rows


LAB = """[[hosts]]
name = "steady"
cpus = [{first}]
[[hosts]]
name = "slowing"
cpus = [{second}]
"""
SLOWED = 0.35  # fraction of its CPU that the host keeps
MOMENT = 7.0  # seconds after the start of a run: the solve is under way


def lab(bench: Bench) -> list[dict]:
    """Static weights from equal hosts are equal shares, that is, plain parts. Their difference from
    'nothing', where blocks stay, shows the noise."""
    mesh, rounds = bench.options.mesh or "m", str(bench.options.iterations or 12000)
    common = ("--iterations", rounds, "--sets", "1", "--warmups", "0", "--trace-iterations", "0")
    ways = {
        "nothing": ("--balance", "none"),
        "static weights, equal": ("--shares", "1:1"),
        "balancing": ("--balance", bench.options.policy),
    }
    runs: dict[str, list[Record]] = {name: [] for name in ways}
    for turn in range(bench.options.turns or 3):
        for name, options in ways.items():
            runs[name].append(in_lab([mesh, "--ranks", "2", *common, *options]))
            took = last_cg(runs[name][-1])
            print(f"  turn {turn + 1}, {name}: {took:.2f} s", file=sys.stderr, flush=True)
    return [in_lab_row(name, records) for name, records in runs.items()]


def last_cg(record: Record) -> float:
    """CG seconds of the last set, on the slowest rank."""
    return float(Times(record).slowest(CG)[-1])


def in_lab_row(name: str, records: list[Record]) -> dict:
    """The results of one way; moves and blocks of the run with the median time."""
    records = sorted(records, key=last_cg)
    took, middle = [last_cg(record) for record in records], records[len(records) // 2]
    one = counted(middle.balance)[-1][1] if middle.balance else None
    return {
        "way": name,
        "cg s": median(took),
        "from": took[0],
        "to": took[-1],
        "moves": sum(len(k.moves) for k in one.looks) if one else 0,
        "blocks at the end": f"{one.owner.count(0)} / {one.owner.count(1)}" if one else "",
        "looks and moves s": sum(k.cost for k in one.looks) if one else None,
    }


def in_lab(arguments: list[str]) -> Record:
    """The record of one run in a new lab, whose second host slows down at MOMENT."""
    first, second = lab_groups.usable_cpus(lab_groups.hierarchies())[:2]
    hosts = LAB.format(first=first, second=second)
    with tempfile.TemporaryDirectory() as scratch, built("balance", hosts) as name:
        inner = [*FEMBENCH, "run", *arguments, "--results", scratch]
        job = subprocess.Popen([*FEMBENCH, "lab", "run", "--name", name, *inner], stdout=subprocess.DEVNULL)
        time.sleep(MOMENT)
        machine_lab.set_speed(name, "slowing", SLOWED)
        job.wait(600)
        return load_all(scratch)[0]


def percent(what: str, measured: float, target: float, ideal: float, noise: float) -> Promise:
    """A promise of a number in percent: values from the target to the ideal keep it."""
    at_least = ideal >= target
    kept = measured >= target if at_least else measured <= target
    undecided = "" if noise <= abs(target - ideal) else "not decidable"
    limit = f"{'>=' if at_least else '<='} {target:g} %"
    return Promise(what, f"{measured:.4g} %, noise {noise:.2g} %", limit, kept, undecided)


MOST_OVERHEAD = {  # % of the time of "against"
    ("c = 1, none", "parts"): 2.0,
    ("c = 4, none", "c = 1, none"): 8.0,
    ("c = 4, observe", "c = 4, none"): 2.0,
}
LEAST_GAIN = {2: 22.0, 4: 33.0}  # % by blocks per rank; at best 25 and 37.5
MOST_HARM, MOST_OFF, MOST_OVER = 5.0, 6.0, 10.0  # %: nothing to gain; predictions; the fifth look
LEAST_OF_WAYS = {  # (cluster, way): (least gain, gain at best), %
    ("static", "static weights"): (33.0, 100 * (1 - 4 / 7)),
    ("static", "balancing"): (33.0, 37.5),
    ("changing", "balancing"): (25.0, 37.5),
}
MOST_BEHIND = 5.0  # %: the recommended policy, behind the best
LEAST_IN_LAB = (10.0, 40.0)  # %, of a host that keeps SLOWED of its CPU for most of the run


def promises(part: str, rows: list[dict]) -> list[Promise]:
    """The promises about one part of the measurements."""
    if part == "overhead":
        return [
            percent(f"{r['run']}, against {r['against']}: longer by", r["more %"], most, 0.0, r["noise %"])
            for r in rows
            for most in [MOST_OVERHEAD[r["run"], r["against"]]]
        ]
    if part == "blocks":
        return [
            percent("c = 4 blocks, against c = 1: longer by", r["more %"], 8.0, 0.0, r["noise %"])
            for r in rows
            if r["blocks per rank"] == "c = 4"
        ]
    if part in ("gain", "still"):
        return [promise for row in rows for promise in _of_balanced(part, row)]
    if part == "change":
        fifth = rows[min(4, len(rows) - 1)]
        return [percent("five looks after a change: over the optimum by", fifth["over it %"], MOST_OVER, 0.0,
                        fifth["noise %"])]  # fmt: skip
    if part == "weights":
        return [
            percent(f"{r['cluster']} cluster, {r['way']}: gain", r["gain %"], *limits, r["noise %"])
            for r in rows
            if (limits := LEAST_OF_WAYS.get((r["cluster"], r["way"])))
        ]
    if part == "policies":
        ours = [row for row in rows if row["policy"] == rows[1]["policy"]]  # the first after none
        return [
            percent(f"{r['scenario']}: {r['policy']} behind the best policy", r["behind the best %"],
                    MOST_BEHIND, 0.0, r["noise %"])
            for r in ours
        ]  # fmt: skip
    nothing, equal, moved = (row["cg s"] for row in rows)
    noise = 100 * abs(equal / nothing - 1)
    return [percent("lab: gain", 100 * (1 - moved / nothing), *LEAST_IN_LAB, noise)]


def _of_balanced(part: str, row: dict) -> list[Promise]:
    c, noise = row["blocks per rank"], row["noise %"]
    name = f"{row['speeds']}, c = {c}"
    target = LEAST_GAIN[c] if part == "gain" else -MOST_HARM
    made = [percent(f"{name}: gain", row["gain %"], target, row["optimum %"], noise)]
    off = row["prediction off, median %"]
    if part == "gain" and off is not None:
        made.append(percent(f"{name}: predictions off by", off, MOST_OFF, 0.0, noise))
    return made


GROUPS = {"overhead": overhead, "blocks": blocks, "gain": gain, "still": still, "change": change,
          "weights": weights, "policies": policies}  # fmt: skip
ROOTS = {"lab": lab}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mesh", default="", help="use this mesh in all parts")
    parser.add_argument("--iterations", type=int, default=0, help="iterations of a solve, in all parts")
    parser.add_argument("--turns", type=int, default=0, help="solves of each case, in all parts")
    parser.add_argument(
        "--stretch", type=float, default=1.0, help="dilate emulated ranks by this additional factor"
    )
    parser.add_argument("--policy", default="amortised", help="policy to measure (default: %(default)s)")
    parser.add_argument("--only", default=",".join(GROUPS), metavar="PART,…", help="run only these parts")
    parser.add_argument("--json", metavar="FILE", help="write all measurements to this file")
    options = parser.parse_args()
    result: dict[str, list] = {}
    asked: list[Promise] = []
    groups = GROUPS | ROOTS
    for name in options.only.split(","):
        print(name, file=sys.stderr)
        result[name] = groups[name](Bench(options))
        asked += promises(name, result[name])
        heads = list(result[name][0])
        print(f"\n{name}: {groups[name].__doc__ or name}\n")
        print(table(heads, [[row.get(h) for h in heads] for row in result[name]]), flush=True)
    return end(asked, file=options.json, **result)


if __name__ == "__main__":
    sys.exit(main())
