"""thesis-004 in a temporary lab of one fast and one slow host (needs root)."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fembench.errors import InputError
from fembench.synthetic import lab, lab_groups
from fembench_studies.thesis_004.machines import SLOW_SPEED

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


def run(arguments: Sequence[str], slow: float = 0.0) -> int:
    """Run `fembench study` with these arguments on a host of speed 0.9 and one `slow` times as fast.

    `slow` = 0: the ratio of the thesis' clusters. Returns the exit status. Raises InputError.
    """
    lab.require_root()
    cpus = lab_groups.usable_cpus(lab_groups.hierarchies())
    if len(cpus) < 2:
        raise InputError(f"--lab: {len(cpus)} usable CPU; expected two")
    text = LAB.format(first=cpus[0], second=cpus[1], slow=0.9 * (slow or SLOW_SPEED))
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "lab.toml")
        path.write_text(text)
        state = lab.up(path)
    me = [sys.executable, "-m", "fembench"]
    inner = [*me, "study", *arguments, "--fast", "node8:2", "--slow", "node00:1"]
    try:
        return subprocess.run([*me, "lab", "run", "--name", state.cluster.name, *inner]).returncode
    finally:
        lab.down(state.cluster.name)
