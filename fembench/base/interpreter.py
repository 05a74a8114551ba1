"""This Python, for programs that import the package that runs here."""

import sys
from pathlib import Path


def interpreter() -> tuple[str, ...]:
    """The words with which a program in this Python starts, before `-m` or `-c`.

    It imports the package that runs here, not that of a clone in whose folder the
    command was typed, where Python would look first (Python 3.10 always looks there).
    """
    elsewhere = Path.cwd() != Path(__file__).resolve().parents[2] and sys.version_info >= (3, 11)
    return sys.executable, *(("-P",) if elsewhere else ())
