"""A counting run: how often a program takes the branches that its code does not decide.

The program runs as it is, with a library loaded before it that puts a breakpoint on each of these branches,
counts there, and continues as the branch would. That needs no source and no symbols of a debugger; each
passage takes about a microsecond, so a small case is enough.
"""

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from fembench.base.config import convert, read_json
from fembench.base.files import write_atomic
from fembench.errors import InputError
from fembench_studies.binaries.binary import Executable
from fembench_studies.binaries.walk import Given, Loops

SOURCE = Path(__file__).with_name("count_branches.c.txt")
PROFILE_SCHEMA = 1


class Passed(msgspec.Struct, frozen=True):
    """How often a branch was passed, and the longest runs of equal outcomes."""

    stayed: int = 0
    taken: int = 0
    longest_stayed: int = 0
    longest_taken: int = 0


class BranchProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Counts of a run, over all its processes."""

    command: str
    program: str  # SHA-256 of the executable
    branches: dict[str, Passed]  # address, hexadecimal
    schema: int = PROFILE_SCHEMA


def undecided(program: Executable, ranks: int, given: Given) -> set[int]:
    """The branches that the code does not decide, on the walks with this number of ranks."""
    guess = Given(Loops(2, 3), calls=given.calls, m=given.m, arguments=given.arguments, rehearsed=True)
    found: set[int] = set()
    for seed in range(5):
        for walk in program.walks(ranks, guess, seed):
            found |= set(walk.unknown) | walk.exits
    return found


def count_run(binary: Path, branches: Iterable[int], command: str) -> BranchProfile:
    """Run a command that starts the program, and count. Raises InputError if it fails or runs another one."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        raise InputError("a counting run needs a C compiler; expected gcc")
    with tempfile.TemporaryDirectory() as folder:
        library, listed = Path(folder) / "count.so", Path(folder) / "branches"
        listed.write_text("".join(f"{a:x}\n" for a in sorted(branches)))
        made = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), "-x", "c", str(SOURCE)]
        subprocess.run(made, check=True, capture_output=True)
        variables = {"LD_PRELOAD": str(library), "FEMBENCH_COUNT_LIST": str(listed)}
        variables["FEMBENCH_COUNT_BINARY"] = str(binary.resolve())
        try:
            done = subprocess.run(shlex.split(command), env={**os.environ, **variables}, capture_output=True)
        except OSError as error:
            raise InputError(f"--count '{command}': {error.strerror}; expected a command") from None
        if done.returncode:
            text = done.stderr.decode(errors="replace").strip().splitlines()
            told = f": {text[-1]}" if text else ""
            raise InputError(f"--count '{command}': exit status {done.returncode}{told}")
        found: dict[str, Passed] = {}
        files = sorted(Path(folder).glob("branches.*"))
        for file in files:
            for line in file.read_text().splitlines():
                name, *numbers = line.split()
                a, b, c, d = map(int, numbers)
                old = found.get(name, Passed())
                found[name] = Passed(
                    old.stayed + a, old.taken + b, max(old.longest_stayed, c), max(old.longest_taken, d)
                )
    if not files:
        raise InputError(f"--count '{command}' did not run {binary}; expected a command that starts it")
    digest = hashlib.sha256(binary.read_bytes()).hexdigest()
    return BranchProfile(command, digest, {name: p for name, p in found.items() if p.stayed + p.taken})


def save_profile(profile: BranchProfile, path: Path | str) -> None:
    write_atomic(path, msgspec.json.format(msgspec.json.encode(profile), indent=1))


def load_profile(path: Path | str) -> BranchProfile:
    """The counts in a file. Raises InputError for anything else."""
    return convert(read_json(path, dict), BranchProfile, where=str(path))


def distributions(program: Executable, profile: BranchProfile) -> tuple[dict[int, Loops], dict[int, float]]:
    """(header -> iterations, branch -> probability that it is taken) that a run tells.

    Raises InputError for the profile of another executable.
    """
    if profile.program != program.image.digest or profile.schema != PROFILE_SCHEMA:
        raise InputError(f"counts of another executable ('{profile.command}'); expected those of this one")
    counted = {int(name, 16): p for name, p in profile.branches.items()}
    loops: dict[int, Loops] = {}
    rates: dict[int, float] = {}
    for address, p in counted.items():
        function = program.owner[address]
        flow, v = program.flow(function), function.vertices[address]
        inside = [loop for loop in flow.loops.values() if address in loop.body and flow.exits(loop, v)]
        rates[address] = p.taken / (p.taken + p.stayed)
        if inside:
            loop = min(inside, key=lambda one: len(one.body))
            found = _iterations(flow, loop, counted, function.vertices)
            if found:
                loops[loop.header] = found
    return loops, rates


def _iterations(flow, loop, counted: Mapping[int, Passed], vertices: Mapping) -> Loops | None:
    """The distribution of the iterations of a loop from the counts of the branches that leave it."""
    left, ways = 0, []
    for address, p in counted.items():
        v = vertices.get(address)
        if v is None or address not in loop.body or not flow.exits(loop, v):
            continue
        on = (p.taken, p.longest_taken) if v.target in loop.body else (p.stayed, p.longest_stayed)
        left += p.taken + p.stayed - on[0]
        ways.append((flow.late(loop, address), *on))
    if not left:
        return None
    stays, longest = max(way[1] + way[0] * left for way in ways), min(way[2] + way[0] for way in ways)
    return Loops(stays / left, max(longest, 1), cut=True)
