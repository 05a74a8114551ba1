"""Other programs, and what they answer; this Python, for those that import this package."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

PIP = f"{sys.executable} -m pip install"


class CommandAnswer(NamedTuple):
    """How a command ended, and what it printed."""

    status: int | None  # None: it could not be started, or took too long
    out: str = ""
    err: str = ""  # or why there is no status
    late: bool = False  # it took too long


def answer(line: Sequence[str], seconds: float, variables: Mapping[str, str] | None = None) -> CommandAnswer:
    """The answer of a command that has nothing to read, and is ended after `seconds`."""
    import subprocess  # slow to import, and ranks ask nobody

    try:
        done = subprocess.run(
            line,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=seconds,
            env=variables,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return CommandAnswer(None, err=str(error), late=isinstance(error, subprocess.TimeoutExpired))
    return CommandAnswer(done.returncode, done.stdout, done.stderr)


def interpreter() -> tuple[str, ...]:
    """The words with which a program in this Python starts, before `-m` or `-c`.

    It imports the package that runs here, not that of a clone in whose folder the
    command was typed, where Python would look first (Python 3.10 always looks there).
    """
    elsewhere = Path.cwd() != Path(__file__).resolve().parents[2] and sys.version_info >= (3, 11)
    return sys.executable, *(("-P",) if elsewhere else ())
