"""thesis-004 in a lab of one fast and one slow host, built for it and removed afterwards (root)."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fembench.base.errors import InputError
from fembench.synthetic import lab, lab_groups

LAB = """name = "thesis-004"
[[hosts]]
name = "node8"
cpus = [{first}, {second}]
speed = 0.9
slots = 8
[[hosts]]
name = "node00"
cpus = [{second}]
speed = {slow:g}
slots = 8
"""


def run(arguments: Sequence[str], slow: float) -> int:
    """`fembench reproduce` with these arguments on a host of speed 0.9 and one `slow` times as fast.

    Returns its exit status. Raises InputError.
    """
    lab.require_root()
    cpus = lab_groups.usable_cpus(lab_groups.hierarchies())
    if len(cpus) < 2:
        raise InputError(f"--lab: {len(cpus)} usable CPU; expected two")
    text = LAB.format(first=cpus[0], second=cpus[1], slow=0.9 * slow)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "lab.toml")
        path.write_text(text)
        state = lab.up(path)
    me = [sys.executable, "-m", "fembench"]
    inner = [*me, "reproduce", *arguments, "--fast", "node8:2", "--slow", "node00:1"]
    try:
        return subprocess.run([*me, "lab", "run", "--name", state.cluster.name, *inner]).returncode
    finally:
        lab.down(state.cluster.name)
