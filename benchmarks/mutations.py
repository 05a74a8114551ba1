"""Do the tests notice small faults? Mutates fembench, runs the tests concerned, and lists what survives.

    python benchmarks/mutations.py [--packages model weights] [--number 60] [--keep FILE] [--minutes 60]

Mutations (`mutate.py`: constants, signs, dropped terms, comparisons, branches, extremes) are drawn at random,
with a fixed seed, `--number` of each package. Each is tested in processes of its own; no file is changed.
First run the test files that import the mutated module, then all quick tests of its room, then the room's MPI
tests on two ranks; a test that fails or takes too long kills the mutation, if its file passes without it.
Those that survive and are listed in `mutations_accepted.toml`, with a reason, do not count: they change
nothing that a user could notice.

Promise: at least 90 % of the mutations of every package are killed. Exit status 1 if not. With `--keep FILE`,
results are written as they come, and those that are there, of the same text, are not repeated.
"""

import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from commands import Promise, end
from mutate import Mutation, mutations

from fembench.base.config import tomllib

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
ACCEPTED = Path(__file__).with_name("mutations_accepted.toml")
PACKAGES = {  # -> its sources, the folder of its tests
    "model": ("fembench/model", "tests/model"),
    "balance": ("fembench/balance", "tests/balance"),
    "weights": ("fembench/weights", "tests/weights"),
    "stats": ("fembench/stats", "tests/stats"),
    "records/validity": ("fembench/records/validity*", "tests/records"),
    "studies": ("studies/fembench_studies", "studies/tests"),
}
HOOK = Path(__file__).with_name("mutant")
LEAST = 0.9  # of the mutations of a package
LONGEST = 300  # seconds of one run of tests
MOST_FILES = 4  # test files that are run first
NONE_SELECTED = 5  # exit status of pytest
PYTEST = ("-W", "error", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest")
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "OMP_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class Mutant:
    """A mutation of a module of a package."""

    package: str
    file: str  # relative to the root
    text: str
    mutation: Mutation

    @property
    def module(self) -> str:
        name = self.file.removesuffix(".py").replace("/", ".")
        return name.removesuffix(".__init__")

    @property
    def key(self) -> str:
        """Names this mutation of this text."""
        m = self.mutation
        told = f"{self.file}\0{m.kind}\0{m.begin}\0{m.put}\0{self.text}"
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        m = self.mutation
        return f"{self.file}:{m.line} {m.kind}: {m.before} => {m.after}"

    @property
    def title(self) -> tuple[str, str, str, str]:
        """What identifies it in a list of accepted ones, whatever its line."""
        return self.file, self.mutation.kind, self.mutation.before, self.mutation.after


def mutants(package: str, number: int, seed: int) -> list[Mutant]:
    """A random sample of the mutations of a package, always the same one."""
    pattern = PACKAGES[package][0]
    files = sorted(ROOT.glob(pattern if "*" in pattern else f"{pattern}/**/*.py"))
    every = [
        Mutant(package, str(f.relative_to(ROOT)), text, one)
        for f in files
        for text in [f.read_text()]
        for one in mutations(text)
    ]
    chooser = random.Random(f"{seed} {package}")
    return chooser.sample(every, min(number, len(every)))


@dataclass(frozen=True)
class Tests:
    """A run of pytest."""

    start: tuple[str, ...]  # mpiexec, if any
    which: str  # of the markers
    paths: tuple[str, ...]
    without: tuple[str, ...] = ()  # files left out

    def ends(self, mutant: str = "") -> tuple[str, str]:
        """("passed", "failed" or "too slow", the file of a test that failed); `mutant`: its file."""
        with tempfile.TemporaryDirectory() as folder:
            variables = {name: value for name, value in os.environ.items() if name != "FEMBENCH_TEST_TALLY"}
            variables |= {**MPI, "TMPDIR": folder, "PYTHONPATH": str(HOOK), "FEMBENCH_MUTANT": mutant}
            left_out = [f"--ignore={file}" for file in self.without]
            line = [*self.start, sys.executable, *PYTEST, *left_out, "-m", self.which, *self._paths()]
            try:
                done = subprocess.run(
                    line, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=LONGEST
                )
            except subprocess.TimeoutExpired:
                return "too slow", ""
        if done.returncode in (0, NONE_SELECTED):
            return "passed", ""
        failed = re.search(r"^(?:FAILED|ERROR) ([^\s:]+)", done.stdout, re.MULTILINE)
        return "failed", failed[1] if failed else ""

    def _paths(self) -> list[str]:
        """Of files and folders: pytest ignores nothing that is named."""
        gone = {(ROOT / file).resolve() for file in self.without}
        return [path for path in self.paths if (ROOT / path).resolve() not in gone]


def tests_of(mutant: Mutant) -> Iterator[Tests]:
    """Those first that are most likely to notice."""
    folder = PACKAGES[mutant.package][1]
    parent, _, name = mutant.module.rpartition(".")
    named = re.compile(rf"{re.escape(mutant.module)}\b|from {re.escape(parent)} import .*\b{name}\b")
    near = [str(f.relative_to(ROOT)) for f in sorted(TESTS.rglob("test_*.py")) if named.search(f.read_text())]
    inside = [f for f in near if f.startswith(folder)]
    if first := (inside or near)[:MOST_FILES]:
        yield Tests((), "not mpi and not alone", tuple(first))
    yield Tests((), "not mpi and not alone and not slow", (folder,))
    if any("mpi" in f.read_text() for f in (ROOT / folder).rglob("test_*.py")):
        mpiexec = Path(sys.executable).with_name("mpiexec")
        yield Tests((str(mpiexec), "-n", "2"), "mpi", (folder,))


def fate(mutant: Mutant) -> str:
    """ "killed", "too slow", or "survived"."""
    with tempfile.TemporaryDirectory() as folder:
        changed = Path(folder, "mutant")
        changed.write_text(f"{mutant.module}\n{mutant.mutation.of(mutant.text)}", encoding="utf-8")
        for tests in tests_of(mutant):
            end, file = tests.ends(str(changed))
            while file and not passes(replace(tests, paths=(file,))):
                tests = replace(tests, without=(*tests.without, file))
                end, file = tests.ends(str(changed))
            if end != "passed":
                return "killed" if end == "failed" else end
    return "survived"


@cache
def passes(tests: Tests) -> bool:
    """Whether tests pass without a mutation: others say nothing of it."""
    end, _ = tests.ends()
    if end != "passed":
        print(f"left out, as it fails without a mutation: {tests.paths[0]}", file=sys.stderr)
    return end == "passed"


def judged(chosen: Sequence[Mutant], workers: int, keep: Path | None, seconds: float) -> dict[str, str]:
    """{key: fate}; what is not begun in time is missing."""
    known = {}
    if keep and keep.exists():
        known = dict(json.loads(line)[:2] for line in keep.read_text().splitlines())
    found = {m.key: known[m.key] for m in chosen if m.key in known}
    left = [m for m in chosen if m.key not in found]
    deadline = time.monotonic() + seconds

    def judge(mutant: Mutant) -> str | None:
        return fate(mutant) if time.monotonic() < deadline else None

    with ThreadPoolExecutor(workers) as pool:
        jobs = {pool.submit(judge, m): m for m in left}
        for n, job in enumerate(as_completed(jobs), 1):
            mutant, end = jobs[job], job.result()
            if end is None:
                continue
            found[mutant.key] = end
            print(f"{n}/{len(left)} {end}: {mutant}", file=sys.stderr, flush=True)
            if keep:
                with open(keep, "a", encoding="utf-8") as stream:
                    stream.write(json.dumps([mutant.key, end, *mutant.title]) + "\n")
    return found


def accepted() -> set[tuple[str, ...]]:
    """Titles of mutations that may survive."""
    listed = tomllib.loads(ACCEPTED.read_text(encoding="utf-8"))["accepted"]
    return {tuple(one[name] for name in ("file", "kind", "before", "after")) for one in listed}


def promise(package: str, chosen: Sequence[Mutant], found: dict[str, str], excused: set[tuple]) -> Promise:
    """The promise about a package; survivors that are not accepted are printed."""
    mine = [m for m in chosen if m.package == package]
    alive = [m for m in mine if found.get(m.key) == "survived"]
    bad = [m for m in alive if m.title not in excused]
    for m in bad:
        print(f"survived: {m}")
    n = sum(m.key in found for m in mine)
    counted = n - len(alive) + len(bad)
    share = 1 - len(bad) / counted if counted else 0.0
    said = f"{share:.1%}: {n} of {len(mine)} run, {len(bad)} survived, {len(alive) - len(bad)} accepted"
    undecided = "" if n == len(mine) else "not all run"
    return Promise(f"{package}: killed", said, f">= {LEAST:.0%}", share >= LEAST, undecided)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--packages", nargs="+", choices=PACKAGES, default=list(PACKAGES))
    parser.add_argument("--number", type=int, default=60, metavar="N", help="of each package (default: 60)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="at the same time (default: 2)")
    parser.add_argument("--minutes", type=float, default=600, help="after which no more is begun")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="where results are kept")
    options = parser.parse_args()
    chosen = [m for name in options.packages for m in mutants(name, options.number, options.seed)]
    found = judged(chosen, options.workers, options.keep, 60 * options.minutes)
    excused = accepted()
    return end([promise(name, chosen, found, excused) for name in options.packages])


if __name__ == "__main__":
    sys.exit(main())
