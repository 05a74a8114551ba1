"""Do the tests notice small errors? Mutations of the modules that reason, one at a time, in a copied tree.

    python benchmarks/mutations.py [--count 300] [--seed 1] [--workers 2] [--only weights/rules] [--json FILE]

A seeded sample of mutations (benchmarks/mutants.py lists the kinds) is drawn from the packages below, by
their size. Each one is written into a copy of the tree. There the tests that import the module run, then the
others of its room, then the MPI tests among them on two ranks, until one fails: the mutant is killed. One on
which a test runs longer than --limit is killed, too. Tests that measure times and slow ones are left out.

The exit status is 1 if less than 90 % of a package's mutants are killed. Survivors are listed with their
place. Those that change nothing that a test should notice are in mutations_accepted.toml, with the reason;
they do not count. --list prints the sample and runs nothing.
"""

import argparse
import ast
import importlib.util
import itertools
import json
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import msgspec
from mutants import Mutant, mutants

from fembench.base.config import tomllib
from fembench.base.files import write_atomic
from fembench.base.tables import table
from fembench.launch.job_line import environment, job_line

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PACKAGES = ("model", "balance", "weights", "stats", "records/validity", "studies")
RANKS = 2  # of MPI tests
LEAST = 0.9  # of a package's mutants that the tests must kill
NONE_SELECTED, UNUSABLE = 5, (3, 4)  # exit statuses of pytest
STAMPS = itertools.count(1_000_000_000)
LEFT_OUT = "mpi and not alone and not slow"
IGNORED = (".git", ".venv", "build", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", "_build")
# first on the path of every process of the copy: an editable install would import the original
FINDER = """import sys
sys.meta_path[:] = [f for f in sys.meta_path if "Redirecting" not in type(f).__name__]
"""


class Accepted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mutant that no test should kill, wherever its line is now."""

    path: str
    line: str
    change: str
    reason: str


@dataclass(frozen=True)
class Outcome:
    """What became of one mutant."""

    mutant: Mutant
    verdict: str  # killed, timeout, survived, accepted, not run
    by: str  # the file of the test that killed it
    seconds: float


def accepted_mutants() -> list[Accepted]:
    """The survivors that are accepted, with their reasons."""
    text = (HERE / "mutations_accepted.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text)["accepted"], list[Accepted])


def sources(only: Sequence[str]) -> list[Path]:
    """The modules of the packages, or those whose path begins with one of `only`."""
    asked = [f"fembench/{name}" for name in only or PACKAGES]
    paths = (p.relative_to(ROOT) for p in sorted((ROOT / "fembench").rglob("*.py")))
    inside = tuple(f"fembench/{name}" for name in PACKAGES)
    return [p for p in paths if _begins(p, asked) and _begins(p, inside)]


def _begins(path: Path, names: Iterable[str]) -> bool:
    return any(str(path).startswith((f"{n}/", f"{n}.py")) for n in names)


def package_of(path: Path) -> str:
    return next(name for name in PACKAGES if _begins(path, [f"fembench/{name}"]))


def drawn(paths: Sequence[Path], count: int, seed: int) -> list[Mutant]:
    """`count` mutants of all packages in proportion to their size, at least half an equal share of each."""
    pool: dict[str, list[Mutant]] = {}
    for path in paths:
        text = (ROOT / path).read_text(encoding="utf-8")
        pool.setdefault(package_of(path), []).extend(mutants(path, text))
    total = sum(map(len, pool.values()))
    draw = random.Random(seed)
    found = []
    for each in pool.values():
        share = max(round(count * len(each) / total), -(-count // (2 * len(pool))))
        found += draw.sample(each, min(share, len(each)))
    return found


@cache
def imported(path: Path) -> frozenset[str]:
    """Modules of fembench that a test file, or a helper of tests that it imports, imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            helper = next(
                (p for p in (path.parent / f"{name}.py", ROOT / f"tests/{name}.py") if p.exists()), None
            )
            found |= imported(helper) if helper and helper != path else {name}
    return frozenset(found)


def tests_of(path: Path) -> list[list[str]]:
    """Two groups of test files: those that import the module, then the others of its room."""
    module = ".".join(path.with_suffix("").parts)
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    direct = [p for p in files if module in imported(p)]
    room = ROOT / "tests" / Path(*path.parts[1:-1])
    rest = [p for p in sorted(room.rglob("test_*.py")) if p not in direct]
    return [[str(p.relative_to(ROOT)) for p in group] for group in (direct, rest) if group]


def copied(folder: Path) -> Path:
    """A copy of the tree that its own Python processes import, compiled modules included."""
    tree = folder / "tree"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*IGNORED), symlinks=True)
    for path in (ROOT / "fembench").rglob("*.pyx"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.origin:
            raise SystemExit(f"{name} is not compiled; install fembench first")
        shutil.copy(spec.origin, tree / path.relative_to(ROOT).parent)
    (tree / "sitecustomize.py").write_text(FINDER)
    return tree


def run_tests(tree: Path, files: Sequence[str], limit: float, ranks: int = 0) -> tuple[str, str]:
    """('passed', 'failed' or 'timeout', the file that failed) of test files of the tree, until one fails.

    `limit` is that of one test, in seconds; `ranks`: MPI tests on so many ranks, 0 means all others. Raises
    SystemExit if pytest cannot run them.
    """
    start = job_line(ranks) if ranks else None
    around = environment(start, asleep=True) if start else dict(os.environ)
    variables = {k: v for k, v in around.items() if not k.startswith(("FEMBENCH_", "OMPI_COMM"))}
    variables |= {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "FEMBENCH_TEST_LIMIT": str(limit)}
    line = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "-m"]
    line += [("" if ranks else "not ") + LEFT_OUT, *files]
    done = subprocess.run(
        start.of(line, tree) if start else line, cwd=tree, env=variables, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode in UNUSABLE:
        raise SystemExit(f"pytest cannot run {' '.join(files)}:\n{done.stdout[-2000:]}")
    if done.returncode in (0, NONE_SELECTED):
        return "passed", ""
    failed = re.search(r"^(?:FAILED|ERROR) ([^\s:]+)", done.stdout, re.MULTILINE)
    late = re.search(r"^Timeout \(", done.stdout, re.MULTILINE)  # of faulthandler, see tests/conftest.py
    return ("timeout" if late and not failed else "failed"), failed[1] if failed else ""


class Bench:
    """Copies of the tree, one per worker, in which mutants are tried."""

    def __init__(self, trees: Sequence[Path], limit: float, direct: bool) -> None:
        self.trees: queue.Queue[Path] = queue.Queue()
        for tree in trees:
            self.trees.put(tree)
        self.limit, self.direct = limit, direct
        self.passing: dict[tuple[str, int], bool] = {}  # (test file, ranks) -> passes on the original

    def try_out(self, mutant: Mutant, accepted: Iterable[Accepted]) -> Outcome:
        """Run the tests of a mutant until one fails."""
        began, tree = time.monotonic(), self.trees.get()
        try:
            verdict, by = self._verdict(tree, mutant)
        finally:
            self.trees.put(tree)
        known = any(
            (a.path, a.line, a.change) == (str(mutant.path), mutant.source, mutant.change) for a in accepted
        )
        verdict = "accepted" if verdict == "survived" and known else verdict
        return Outcome(mutant, verdict, by, time.monotonic() - began)

    def _verdict(self, tree: Path, mutant: Mutant) -> tuple[str, str]:
        path = tree / mutant.path
        original = path.read_text(encoding="utf-8")
        groups = tests_of(mutant.path)
        for files in groups[:1] if self.direct else groups:
            while files:
                self._write(path, mutant.applied(original))
                found, by = run_tests(tree, files, self.limit)
                self._write(path, original)
                if found == "passed":
                    break
                if found == "timeout":
                    return "timeout", ""
                if not by or self._passes(tree, by):
                    return "killed", by
                files = [file for file in files if file != by]
        for file in (f for group in groups for f in group if "mark.mpi" in (tree / f).read_text("utf-8")):
            self._write(path, mutant.applied(original))
            found, _ = run_tests(tree, [file], self.limit, RANKS)
            self._write(path, original)
            if found != "passed" and self._passes(tree, file, RANKS):
                return "killed", file
        return "survived", ""

    def _passes(self, tree: Path, file: str, ranks: int = 0) -> bool:
        """Whether a test file passes on the original; asked once. One that fails says nothing of a mutant."""
        if (file, ranks) not in self.passing:
            self.passing[file, ranks] = run_tests(tree, [file], self.limit, ranks)[0] == "passed"
            if not self.passing[file, ranks]:
                print(f"left out, as it fails without a mutation: {file}", file=sys.stderr)
        return self.passing[file, ranks]

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        stamp = next(STAMPS)  # Python compares times of a source in whole seconds
        os.utime(path, (stamp, stamp))


def tried(
    found: Sequence[Mutant], accepted: Sequence[Accepted], options: argparse.Namespace
) -> list[Outcome]:
    """The outcome of each mutant, in the order in which they end."""
    end = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    outcomes = []
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.workers) as pool:
        trees = [copied(Path(scratch, str(k))) for k in range(options.workers)]
        bench = Bench(trees, options.limit, options.direct)

        def one(mutant: Mutant) -> Outcome:
            late = time.monotonic() > end
            return Outcome(mutant, "not run", "", 0.0) if late else bench.try_out(mutant, accepted)

        for k, outcome in enumerate(pool.map(one, found), 1):
            outcomes.append(outcome)
            m = outcome.mutant
            print(f"[{k}/{len(found)}] {outcome.verdict}: {m.place} {m.change}", file=sys.stderr, flush=True)
    return outcomes


def scores(outcomes: Sequence[Outcome]) -> dict[str, tuple[Counter[str], float]]:
    """package -> (number of each verdict, fraction killed of those that count)."""
    found: dict[str, Counter[str]] = {}
    for o in outcomes:
        found.setdefault(package_of(o.mutant.path), Counter())[o.verdict] += 1
    made = {}
    for name, counts in found.items():
        killed = counts["killed"] + counts["timeout"]
        of = killed + counts["survived"]
        made[name] = counts, killed / of if of else float("nan")
    return made


def report(outcomes: Sequence[Outcome]) -> int:
    """Print the table of scores and the survivors; 1 if a package is below LEAST or was not run."""
    found = scores(outcomes)
    verdicts = ("killed", "timeout", "survived", "accepted", "not run")
    rows = [
        [name, *(counts[v] for v in verdicts), f"{score:.0%}", "yes" if score >= LEAST else "NO"]
        for name, (counts, score) in found.items()
    ]
    print(table(["package", *verdicts, "score", f"at least {LEAST:.0%}"], rows))
    for o in outcomes:
        if o.verdict == "survived":
            print(f"{o.mutant.place}: {o.mutant.kind}: {o.mutant.change}")
    return int(not all(score >= LEAST for _, score in found.values()))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=300, help="number of mutants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="copies of the tree (default: %(default)s)")
    parser.add_argument("--only", nargs="+", default=[], metavar="PATH", help="such as stats, weights/rules")
    parser.add_argument(
        "--limit", type=float, default=60, help="seconds that one test may take (default: %(default)s)"
    )
    parser.add_argument("--minutes", type=float, default=0, help="start no mutant after this time")
    parser.add_argument("--direct", action="store_true", help="only the tests that import the module")
    parser.add_argument("--list", action="store_true", help="print the sample, and run nothing")
    parser.add_argument("--json", metavar="FILE", help="write all outcomes")
    options = parser.parse_args(arguments)
    found = drawn(sources(options.only), options.count, options.seed)
    if not found:
        parser.error(f"--only {' '.join(options.only)}: no module of {', '.join(PACKAGES)}")
    if options.list:
        print("\n".join(f"{m.place}: {m.kind}: {m.change}" for m in found))
        return 0
    outcomes = tried(found, accepted_mutants(), options)
    if options.json:
        write_atomic(options.json, json.dumps([asdict(o) for o in outcomes], indent=1, default=str))
    return report(outcomes)


if __name__ == "__main__":
    sys.exit(main())
