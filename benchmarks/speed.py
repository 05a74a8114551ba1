"""Measure every speed target of benchmarks/README.md, as ratios, in one session.

    python benchmarks/speed.py [--quick] [--only PART ...] [--json FILE]

Each ratio compares numbers measured alternately in one session; the table shows its median and quartiles. The
roof (the memory bandwidth) is measured in the same turns. It takes half an hour, with the boxes `l` and `xl`
and an unstructured mesh of 681 000 dofs; with --quick a few minutes, with `m` and a small unstructured mesh.
Comparisons need petsc4py, scikit-fem and pyamg; a line whose package is missing says "not measured". The exit
status is 1 if a target is not met or could not be measured.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from commands import Promise, end
from kernels import ELEMENT

from fembench.base.config import convert
from fembench.host.build import this_build
from fembench.host.host import host_facts
from fembench.launch.line import environment, job_line
from fembench.mesh.box import box
from fembench.mesh.io import write
from fembench.mesh.mesh import Mesh
from fembench.mesh.presets import resolve
from fembench.partition.methods import partition
from fembench.partition.partition import node_parts
from fembench.records.phases import PRODUCT_PARTS
from fembench.records.record import Record

HERE = Path(__file__).resolve().parent
THESIS_MESH = HERE.parent / "meshes" / "thesis3.msh"
CACHE = Path(tempfile.gettempdir()) / "fembench-benchmarks"
TURNS = 15  # of imports
LAYOUTS = 15  # runs of each layout of ranks and threads


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    line: str  # of the list of targets in README.md
    what: str
    measured: float | None  # None: could not be measured; `what` says why
    low: float | None = None  # quartiles of the samples, if there are any
    high: float | None = None
    target: float | None = None  # None: stated, not tested
    at_least: bool = True

    @property
    def promise(self) -> Promise:
        """With the quartiles behind the median."""
        what = f"{self.line}: {self.what}"
        limit = "" if self.target is None else f"{'>=' if self.at_least else '<='} {self.target:g}"
        if self.measured is None:
            return Promise(what, "–", limit, undecided="not measured")
        spread = "" if self.low is None or self.high is None else f" ({self.low:.3g} – {self.high:.3g})"
        target = self.measured if self.target is None else self.target
        kept = self.measured >= target if self.at_least else self.measured <= target
        return Promise(what, f"{self.measured:.3g}{spread}", limit, kept)


@dataclass(frozen=True)
class Sizes:
    """Meshes of a run."""

    box: str
    boxes: tuple[str, ...]  # of the product
    side: int  # nodes along an edge of the unstructured mesh
    memory: str
    a_node: float  # most bytes per mesh node on a rank: libraries weigh more on small meshes
    of_one: float  # most memory of a rank of four, relative to one rank alone
    of_file: dict[str, float]  # most bytes allocated on one of four ranks, of those of nodes and cells
    jittered: float | None  # least bandwidth of the symmetric product on the unstructured mesh, of the roof
    accuracy: str
    levels: tuple[str, ...]
    solved: dict[str, dict[tuple[str, str, int], float | None]]  # least ratios by mesh, peer, method, ranks
    repetitions: int
    in_l3: float | None = (
        None  # least bandwidth of a product, of the roof, if L3 holds what it reads; None: as out of cache
    )


GAMG, TWO_LEVEL, PYAMG = ("petsc-aij", "gamg"), ("own-sym", "two-level"), ("scikit-fem", "pyamg")
SOLVED: dict[str, dict[tuple[str, str, int], float | None]] = {
    "l": {(*GAMG, 1): 6, (*GAMG, 2): 5, (*TWO_LEVEL, 1): 3.5},
    "xl": {(*GAMG, 1): 6},
    "unstructured": {(*GAMG, 1): 3.5},
    "graded": {(*GAMG, 1): 2},
    "m": {(*PYAMG, 1): 8},
}
SOLVED_QUICK = {"s": dict.fromkeys(o for others in SOLVED.values() for o in others)}  # lead grows with size
QUICK = Sizes(
    "m", ("m",), 42, "m", 7000, 0.8, {"part": 0.7, "setup": 0.9}, None, "s", ("s",), SOLVED_QUICK, 7, 0.55
)
FULL = Sizes(
    "l", ("l", "xl"), 61, "xl", 3000, 0.35, {"part": 0.4, "setup": 0.4}, 0.88, "m", ("m", "l"), SOLVED, 15
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller meshes")
    parser.add_argument("--only", nargs="+", default=[], choices=[p.__name__ for p in PARTS], metavar="PART",
                        help=f"measure only these: {', '.join(p.__name__ for p in PARTS)}")  # fmt: skip
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the rows and all measurements to this file"
    )
    options = parser.parse_args()
    tools = Tools()
    host, (commit, dirty, _) = host_facts(), this_build()
    print(f"{host.cpu_model}, {host.cores} cores, load {host.load_average:.2f}, commit {commit[:12]}"
          f"{', changed since' if dirty else ''}", file=sys.stderr)  # fmt: skip
    rows: list[Row] = []
    for part in PARTS:
        if not options.only or part.__name__ in options.only:
            rows += attempt(part, tools, QUICK if options.quick else FULL)
    found = {"rows": [asdict(row) for row in rows], "loads": tools.loads, "measured": tools.found}
    found |= {"cpu": host.cpu_model, "commit": commit, "dirty": dirty}
    return end([row.promise for row in rows], file=options.json, **found)


def attempt(part: Callable[["Tools", Sizes], Iterator[Row]], tools: "Tools", sizes: Sizes) -> list[Row]:
    """The rows of one part. An error ends the part with a row that states it; earlier rows are kept."""
    rows: list[Row] = []
    try:
        for row in part(tools, sizes):
            rows.append(row)  # one at a time, so that an exception loses no earlier row
            print(f"      {row.promise.what}: {row.promise.found}", file=sys.stderr)
    except (subprocess.CalledProcessError, LookupError, ValueError) as error:
        said = getattr(error, "stderr", "") or str(error) or type(error).__name__
        reason = said.strip().splitlines()[-1]
        rows.append(Row("–", f"{part.__name__}: {reason}", None))
    return rows


class NotTimed(LookupError):
    """A peer has no time: not installed, or its solution does not agree."""


class Tools:
    """Runs the measuring programs; keeps their results and the load of the machine."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}
        self.loads: dict[str, float] = {}

    def run(self, *words: object) -> Any:
        """The JSON output of a program. Raises CalledProcessError."""
        line = [str(word) for word in words]
        name = " ".join([Path(line[0]).name, *line[1:]])
        load = os.getloadavg()[0]
        print(f"load {load:5.2f}  {name}", file=sys.stderr, flush=True)
        start = (
            [sys.executable, "-m", "fembench"] if line[0] == "fembench" else [sys.executable, HERE / line[0]]
        )
        done = subprocess.run([*start, *line[1:]], capture_output=True, text=True)
        if not done.stdout:
            raise subprocess.CalledProcessError(done.returncode, name, done.stdout, done.stderr)
        self.found[name], self.loads[name] = json.loads(done.stdout), load
        return self.found[name]


def ratio(line: str, what: str, samples: Any, target: float | None = None, at_least: bool = True) -> Row:
    """A row from samples."""
    low, middle, high = np.quantile(np.asarray(samples, float), [0.25, 0.5, 0.75]).tolist()
    return Row(line, what, middle, low, high, target, at_least)


def products(tools: Tools, sizes: Sizes) -> Iterator[Row]:
    """Line 1."""
    jittered, only = f"jittered:{sizes.side}", ("--only", "^product (sym|bsr)$")
    for mesh in (*sizes.boxes, jittered):
        found = tools.run("kernels.py", "--json", "--meshes", mesh, "--turns", 61, *only)[0]
        for storage, least in (("sym", sizes.jittered if mesh == jittered else 0.9), ("bsr", 0.9)):
            yield product(f"{storage} product over the roof, {mesh}", found, storage, least, sizes)
    both = tools.run(
        "kernels.py", "--json", "--processes", 2, "--meshes", sizes.box, "--only", "^product sym$"
    )
    yield product(f"sym product over the roof of 2 processes, {sizes.box}", both[0], "sym", 0.85, sizes)


def product(what: str, found: dict[str, Any], storage: str, least: float | None, sizes: Sizes) -> Row:
    """Bandwidth of a product relative to the roof."""
    name = f"product {storage}"
    if sizes.in_l3 and least and found["bytes"][name] <= host_facts().caches.get("L3", 0):
        least = sizes.in_l3
    return ratio("1", what, of_roof(found, name), least)


def of_roof(found: dict[str, Any], name: str) -> Any:
    """Bandwidth of a kernel relative to that of the read in the same turn."""
    speed, roof = (found["bytes"][n] / np.array(found["ns"][n]) for n in (name, "read"))
    return speed / roof


def threads(tools: Tools, sizes: Sizes) -> Iterator[Row]:
    """Line 1: the product of one rank of two threads, in turns with that of two ranks."""
    words = ["--iterations", 30, "--sets", 3, "--warmups", 1, "--json", "--results"]
    found: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(LAYOUTS):
            for ranks, own in found.items():
                layout = "--ranks", ranks, "--threads", 2 // ranks
                own += products_of(tools.run("fembench", "run", sizes.box, *layout, *words, folder))
    speed = np.array(found[2]) / np.array(found[1])
    what = f"product of a rank of 2 threads, speed over that of 2 ranks, {sizes.box}"
    yield ratio("1", what, speed, 0.95)


def products_of(record: dict[str, Any]) -> list[float]:
    """[timed set] seconds of all products on the slowest rank."""
    sets = [one for one in convert(record, Record, where="run").sets if not one.warmup]
    return [float(np.asarray(one.seconds)[:, list(PRODUCT_PARTS)].sum(axis=1).max()) for one in sets]


def iterations(tools: Tools, sizes: Sizes) -> Iterator[Row]:
    """Line 2."""
    n = sizes.repetitions
    box = race(tools, sizes.box, 2, n, "own-sym", "numpy", "petsc")
    yield from against_petsc(box, sizes.box, {1: 2.0, 2: 1.5})
    for precond in ("none", "jacobi"):
        yield over_own(box, f"numpy + scipy CSR over own, {sizes.box}, {precond}", ["numpy"], precond, 1, 3.3)
    shaken = race(tools, unstructured(sizes.side), 2, n, "own-sym", "petsc")
    yield from against_petsc(shaken, "unstructured", {1: 2.0, 2: 1.5})
    yield from against_petsc(race(tools, "m3", 1, 100, "own-sym", "petsc"), "m3", {1: 1.4})


def race(tools: Tools, mesh: Path | str, ranks: int, repetitions: int, *only: str) -> list[dict[str, Any]]:
    """Timed iterations of the peers whose iterates agree, without preconditioner and with Jacobi."""
    words = ["--precond", "none", "jacobi", "--iterations", 20, "--parity", "iterate"]
    return peers(tools, mesh, "--ranks", ranks, "--only", *only, "--repetitions", repetitions, *words)


def solutions(tools: Tools, sizes: Sizes) -> Iterator[Row]:
    """Line 6: set-up and solution to 1e-7 by other methods, over own multigrid; assembly of line 4."""
    for mesh, others in sizes.solved.items():
        path = MADE[mesh](sizes.side) if mesh in MADE else mesh
        names, preconds, ranks = (sorted(set(part)) for part in zip(*others, strict=True))
        words = ["--ranks", max(ranks), "--only", *sorted({"own-sym", *names})]
        words += ["--precond", "multigrid", *preconds, "--repetitions", 3, "--tolerance", 1e-7]
        runs = peers(tools, path, *words)
        for other, target in others.items():
            yield to_solution(runs, mesh, *other, target)
        if "scikit-fem" in names:
            ours, theirs = pick(runs, "own-sym", "multigrid", 1), pick(runs, "scikit-fem", "pyamg", 1)
            faster = float(np.median(theirs["assembly"]) / np.median(ours["assembly"]))
            yield Row("4", f"assembly of scikit-fem over own, {mesh}", faster, target=15)


def to_solution(
    runs: list[dict[str, Any]], mesh: str, peer: str, precond: str, ranks: int, target: float | None
) -> Row:
    what = f"to the solution: {peer} {precond} over own multigrid, {mesh}, {ranks} rank{'s' * (ranks > 1)}"
    try:
        own, other = pick(runs, "own-sym", "multigrid", ranks), pick(runs, peer, precond, ranks)
    except NotTimed as error:
        return Row("6", f"{what}: {error}", None, target=target)
    theirs, ours = (float(np.median(run["setup"]) + np.median(run["solves"])) for run in (other, own))
    return Row("6", what, theirs / ours, target=target)


def peers(tools: Tools, mesh: Path | str, *words: object) -> list[dict[str, Any]]:
    """Runs of `fembench peers` that have a time."""
    with tempfile.TemporaryDirectory() as folder:
        record = tools.run("fembench", "peers", mesh, *words, "--json", "--results", folder)
    return [run for run in record["runs"] if run["status"] == "timed"]


def pick(runs: list[dict[str, Any]], peer: str, precond: str, ranks: int) -> dict[str, Any]:
    """The run of a peer. Raises NotTimed."""
    for run in runs:
        if (run["peer"], run["precond"], run["ranks"]) == (peer, precond, ranks):
            return run
    raise NotTimed(f"{peer} with {precond} was not timed on {ranks} rank{'s' * (ranks > 1)}")


def over_own(
    runs: list[dict[str, Any]], what: str, names: list[str], precond: str, ranks: int, target: float
) -> Row:
    """Time per iteration of the fastest of these peers over ours."""
    try:
        ours = pick(runs, "own-sym", precond, ranks)
        timed = [pick(runs, name, precond, ranks) for name in names]
    except NotTimed as error:
        return Row("2", f"{what}: {error}", None, target=target)
    best = min(timed, key=lambda r: np.median(r["per_iteration"]))
    samples = np.array(best["per_iteration"]) / np.array(ours["per_iteration"])
    return ratio("2", what.replace("BEST", best["peer"]), samples, target)


def against_petsc(runs: list[dict[str, Any]], mesh: str, targets: dict[int, float]) -> Iterator[Row]:
    formats = ["petsc-aij", "petsc-baij", "petsc-sbaij"]
    for ranks, target in targets.items():
        for precond in ("none", "jacobi"):
            what = f"BEST over own, {mesh}, {precond}, {ranks} rank{'s' * (ranks > 1)}"
            yield over_own(runs, what, formats, precond, ranks, target)


def unstructured(side: int) -> Path:
    """The jittered mesh of kernels.py, in the shape of the boxes, as a file kept for the next time."""
    from kernels import jittered

    def make(name: str) -> Mesh:
        x, cells = jittered(side)
        return Mesh.create(x / (side - 1) * [1.0, 0.5, 1.0], cells, "tet4", name)

    return kept(f"jittered-{side}", make)


def graded(side: int) -> Path:
    """A box of half as many cells along an edge, which grow by twelve, as a file kept for the next time."""
    cells = side // 2 + 3  # 118 000 equations for the 61 nodes of the unstructured mesh
    plain = box((cells, cells, cells), lengths=(1.0, 1.0, 1.0))
    x = np.expm1(2.5 * plain.x) / np.expm1(2.5) * [1.0, 0.5, 1.0]  # the shape of the boxes, for their load
    return kept(f"graded-box-{cells}", lambda name: Mesh.create(x, plain.cells, "tet4", name))


MADE = {"unstructured": unstructured, "graded": graded}


def kept(name: str, make: Callable[[str], Mesh]) -> Path:
    """The file of a mesh, made only once."""
    path = CACHE / f"{name}.vtu"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        write(make(name), path)
    return path


def loop(tools: Tools, sizes: Sizes) -> Iterator[Row]:
    """The Python loop of line 2."""
    for ranks, target in ((1, 35), (2, 70)):
        found = tools.run("loop.py", "--json", "--ranks", ranks)[0]
        what = f"per iteration that the loop in Python adds, {ranks} rank{'s' * (ranks > 1)}"
        for unit, key, limit in (
            ("µs", "more_than_c", None),
            ("steps of a plain loop", "more_in_steps", target),
        ):
            more = found[key]["Python, standard"]
            yield Row("2", f"{unit} {what}", more["median"], more["low"], more["high"], limit, at_least=False)


# rounding depends on how a matrix is stored
SAME_STORAGE = {"own-sym": "petsc-sbaij", "own-bsr": "petsc-baij", "own-csr": "petsc-aij"}


def accuracy(tools: Tools, sizes: Sizes) -> Iterator[Row]:
    """Line 3."""
    found = tools.run("accuracy.py", "--json", "--mesh", sizes.accuracy)
    worst = max(found["dots"], key=found["dots"].get)
    what = f"error of the worst fused inner product over numpy's: {worst}"
    yield Row("3", what, found["dots"][worst], target=4, at_least=False)
    for precond, errors in found["iterates"].items():
        for own, other in SAME_STORAGE.items():
            if other in errors:
                what = f"error of the 50th iterate of {own} over that of {other}, {sizes.accuracy}, {precond}"
                yield Row("3", what, errors[own] / errors[other], target=2, at_least=False)


def assembly(tools: Tools, sizes: Sizes) -> Iterator[Row]:
    """Line 4."""
    only = f"(symbolic|numeric) sym|{ELEMENT}"
    found = tools.run("kernels.py", "--json", "--meshes", sizes.box, "--only", only)[0]
    ns = {name: np.array(found["ns"][name]) / cells for name, cells in found["assembled"].items()}
    for name, target in (("symbolic", 0.22), ("numeric", 0.5)):
        yield ratio("4", f"{name} assembly, M tets/s, {sizes.box}", 1e3 / ns[f"{name} sym"])
        what = f"{name} assembly, of the time of the element matrices alone, {sizes.box}"
        yield ratio("4", what, ns[f"{name} sym"] / ns[ELEMENT], target, at_least=False)


def memory(tools: Tools, sizes: Sizes) -> Iterator[Row]:
    """Line 5."""
    one, two, four = tools.run("memory.py", "--json", "--mesh", sizes.memory, "--ranks", "1,2,4")
    mesh = sizes.memory
    yield Row("5", f"GiB on 2 ranks, {mesh}", two["together"] / 2**30, target=8, at_least=False)
    worst = max(f["a_node"] for f in (one, two, four))
    yield Row("5", f"bytes per mesh node on a rank, {mesh}", worst, target=sizes.a_node, at_least=False)
    largest = four["largest"] / one["largest"]
    yield Row("5", f"largest rank of 4 over 1 rank, {mesh}", largest, target=sizes.of_one, at_least=False)
    of_file = tools.run("memory.py", "--json", "--slices", "--mesh", sizes.memory, "--ranks", 4)[0]
    for part, what in (("part", "until it has its part"), ("setup", "at any time of the set-up")):
        what = f"bytes that a rank of 4 allocates {what}, of a mesh in a folder, {mesh}"
        yield Row("5", what, of_file[part], target=sizes.of_file[part], at_least=False)


def interfaces(tools: Tools, sizes: Sizes) -> Iterator[Row]:
    """Line 7."""
    equal = [1] * 16
    for mesh, shares in ((sizes.box, [1] * 4), (sizes.box, [4, 2, 1, 1]), ("m", equal),
                         (unstructured(sizes.side), equal), (THESIS_MESH, equal[:4])):  # fmt: skip
        rcb, metis = (shared_nodes(resolve(str(mesh)), shares, method) for method in ("rcb", "metis"))
        what = f"shared nodes of bisection over METIS, {Path(mesh).name}, {len(shares)} parts"
        what += "" if shares[0] == 1 else f", {':'.join(map(str, shares))}"
        yield Row("7", what, rcb / metis, target=1.15, at_least=False)


def shared_nodes(mesh: Mesh, shares: list[int], method: str) -> int:
    """The number of nodes that belong to several parts."""
    node, _ = node_parts(mesh.cells, partition(mesh, shares, method).part_of_cell, mesh.n_nodes)
    return int(np.count_nonzero(np.bincount(node) > 1))


def levels(tools: Tools, sizes: Sizes) -> Iterator[Row]:
    """Line 6."""
    for mesh in sizes.levels:
        found = tools.run("levels.py", "--json", "--mesh", mesh)
        two_level, jacobi = found["two-level"], found["jacobi"]
        growth = max(two_level.values()) / two_level["2"]
        yield Row(
            "6",
            f"two-level iterations, most of 2 … 16 ranks over 2, {mesh}",
            growth,
            target=1.25,
            at_least=False,
        )
        worst = max(two_level[p] / jacobi[p] for p in two_level)
        yield Row("6", f"two-level iterations over Jacobi's, {mesh}", worst, target=1, at_least=False)
        words = ("--ranks", "1,2,3,4,8,16", "--precond", "multigrid", "--tolerance", 1e-7)
        counts = tools.run("levels.py", "--json", "--mesh", mesh, *words)["multigrid"].values()
        most, spread = max(counts), max(counts) - min(counts)
        yield Row("6", f"multigrid iterations, most of 1 … 16 ranks, {mesh}", most, target=9, at_least=False)
        yield Row("6", f"multigrid iterations, most less fewest, {mesh}", spread, target=1, at_least=False)


IMPORTED = """
import time
begin = time.perf_counter()
import mpi4py
mpi4py.rc.initialize = False
{}
middle = time.perf_counter()
from mpi4py import MPI
MPI.Init()
print(middle - begin, time.perf_counter() - middle)
"""


def imports(tools: Tools, sizes: Sizes) -> Iterator[Row]:
    """Line 8, in the environment of a rank. numpy and mpi4py alone are what no rank can do without."""
    needed = ("import fembench.bench.case_run", "import numpy; from mpi4py import MPI")
    variables = {k: v for k, v in environment(job_line(1)).items() if k != "PYTHONDONTWRITEBYTECODE"}
    times = np.empty((TURNS + 1, len(needed), 2))
    for turn, which in np.ndindex(times.shape[:2]):
        start = [sys.executable, "-c", IMPORTED.format(needed[which])]
        done = subprocess.run(start, env=variables, capture_output=True, text=True, check=True)
        times[turn, which] = [float(word) for word in done.stdout.split()]
    (ours, least), (start_up, _) = times[1:].transpose(2, 1, 0)  # the first one may have compiled
    yield ratio("8", "time to import what a rank needs over numpy and mpi4py alone", ours / least, 2, False)
    yield ratio("8", "s to import what a rank needs", ours)
    yield ratio("8", "s to import numpy and mpi4py alone", least)
    yield ratio("8", "s of MPI_Init after that", start_up)


PARTS = (
    products,
    threads,
    iterations,
    solutions,
    loop,
    accuracy,
    assembly,
    memory,
    interfaces,
    levels,
    imports,
)


if __name__ == "__main__":
    sys.exit(main())
