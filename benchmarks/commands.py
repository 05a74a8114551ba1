"""Run commands of fembench from a benchmark, here or in a lab."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

FEMBENCH = (sys.executable, "-m", "fembench")


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
