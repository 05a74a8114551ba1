"""What benchmarks share: commands of fembench, here or in a lab, and the promises that they end with."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from fembench.base.commands import interpreter
from fembench.base.files import write_atomic
from fembench.base.tables import table
from fembench.host import host
from fembench.host.others import TICK, CpuTimes, share
from fembench.records.quiet import OTHERS

FEMBENCH = (*interpreter(), "-m", "fembench")


def fembench(*words: str, capture: bool = False) -> str:
    """Print and run one command of fembench; returns its output if `capture`.

    Status 1 is a result: measured, but not valid.
    """
    print(f"$ fembench {' '.join(words)}", file=sys.stderr, flush=True)
    done = subprocess.run([*FEMBENCH, *words], stdout=subprocess.PIPE if capture else None, text=True)
    if done.returncode > 1 or done.returncode < 0:
        raise SystemExit(f"fembench {words[0]} ended with status {done.returncode}")
    return done.stdout or ""


def inside(lab: str, *words: str, capture: bool = False) -> str:
    """Run the command in a lab, or on this machine if the name of the lab is empty."""
    before = ("lab", "run", "--name", lab, *FEMBENCH) if lab else ()
    return fembench(*before, *words, capture=capture)


@contextlib.contextmanager
def built(name: str, hosts: str) -> Iterator[str]:
    """Build a lab, yield its name, remove it; `hosts` is the text of its [[hosts]] (needs root)."""
    with tempfile.TemporaryDirectory() as scratch:
        cluster = Path(scratch, "lab.toml")
        cluster.write_text(f'name = "{name}"\n{hosts}')
        fembench("lab", "down", name)
        fembench("lab", "up", str(cluster))
        try:
            yield name
        finally:
            fembench("lab", "down", name)


def disturbance() -> Callable[[], str]:
    """A function: why measurements since now test nothing, because others used the processors; or ""."""
    begin = _processors()

    def found() -> str:
        others, resolution = share(begin, _processors(), len(host.affinity()))
        if others - resolution <= OTHERS:
            return ""
        return (
            f"others used {others:.1f} % of the processors' time (at most {OTHERS:g} %): repeat without them"
        )

    return found


def _processors() -> CpuTimes:
    """Times of the processors now, and of this process with all the commands that it has waited for."""
    spent = tuple(TICK * n for n in host.stat_ticks(host.affinity()))
    return CpuTimes(time.perf_counter(), spent, {"own": sum(os.times()[:4])})


class Promise(NamedTuple):
    """One promise of a benchmark, compared with what was found."""

    what: str
    found: str
    limit: str  # "": stated, not promised
    kept: bool = True
    undecided: str = ""  # why it cannot be judged, in a word or two: the verdict then

    @property
    def verdict(self) -> str:
        """kept, NOT KEPT, stated, or why it cannot be judged."""
        return self.undecided or ("stated" if not self.limit else "kept" if self.kept else "NOT KEPT")


def at_most(what: str, found: float, limit: float, form: str = ".1%") -> Promise:
    """A number with its upper limit, both printed in this form."""
    return Promise(what, f"{found:{form}}", f"<= {limit:{form}}", found <= limit)


def at_least(what: str, found: float, limit: float, form: str = ".1%") -> Promise:
    """A number with its lower limit, both printed in this form."""
    return Promise(what, f"{found:{form}}", f">= {limit:{form}}", found >= limit)


def end(
    promises: Iterable[Promise], invalid: str = "", *, file: Path | str | None = None, **more: object
) -> int:
    """Print every promise with its limit, what was found and the verdict; return the exit status.

    The status is 0 if all promises are kept, and 1 if one is not or cannot be judged, or if there is none.
    `invalid` says why the measurements test nothing: then no promise is judged. The promises are also
    written to `file` as JSON, if one is given, with `more`.
    """
    judged = [p._replace(undecided="INVALID") if invalid and p.limit else p for p in promises]
    rows = [[p.what, p.limit, p.found, p.verdict] for p in judged]
    print(f"\n{table(['promise', 'limit', 'found', 'verdict'], rows, align='llll')}")
    if invalid:
        print(f"\nINVALID: {invalid}")
    if file:
        tree = more | {"promises": [p._asdict() | {"verdict": p.verdict} for p in judged]}
        write_atomic(file, json.dumps(tree, indent=1))
    return 0 if judged and all(p.verdict in ("kept", "stated") for p in judged) else 1
