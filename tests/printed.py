"""What launchers print of jobs that cannot start or are ended: data/launchers.txt, by name.

Open MPI 5.0.11 and 4.1.4, MPICH 5.0.2, Intel MPI 2021.18, Slurm 22.05, OpenSSH. In the file, \\0 and \\r
stand for these characters, and a backslash at the end of a line for no line break.
"""

import re
from pathlib import Path
from types import SimpleNamespace

_TEXT = (Path(__file__).parent / "data" / "launchers.txt").read_text(encoding="utf-8")
_PARTS = re.split(r"^== (\w+)\n", _TEXT, flags=re.MULTILINE)[1:]


def _as_printed(text):
    return text.replace("\\\n", "").replace("\\0", "\0").replace("\\r", "\r")


RULE = "-" * 74
printed = SimpleNamespace(**{name: _as_printed(text) for name, text in zip(_PARTS[::2], _PARTS[1::2])})
