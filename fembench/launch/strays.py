"""Processes that outlive their launcher, also outside its process group (Linux).

Launchers put the `ssh` of each host into a process group of its own, and daemons into a
session of their own. Both keep the launcher's session or a variable of its environment.

As a program, this is a guard: if the process that started it is killed, it ends what
that one's launcher has started. It imports nothing of fembench.
"""

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

MARK = "FEMBENCH_STARTER"  # variable that all processes of a job inherit
PATIENCE = 1.0  # seconds that killed processes get to be gone
LINGER = 5.0  # seconds that a launcher gets to end after its starter


def marked(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables, with one that no other job has."""
    return {**variables, MARK: f"{os.getpid()}-{secrets.token_hex(8)}"}


def end_strays(session: int, variables: Mapping[str, str]) -> None:
    """Kill the processes of a session, and all that inherited these variables' mark."""
    deadline = time.monotonic() + PATIENCE
    while (found := list(_alive(session, variables.get(MARK, "")))) and time.monotonic() < deadline:
        for process in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.02)


def _alive(session: int, mark: str) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            state, _, _, of_session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            words = (folder / "environ").read_bytes().split(b"\0") if mark else []
            mine = int(of_session) == session or f"{MARK}={mark}".encode() in words
            if mine and state not in "ZX" and int(folder.name) != os.getpid():
                yield int(folder.name)


@contextlib.contextmanager
def guarded(launcher: int, variables: Mapping[str, str]) -> Iterator[None]:
    """Inside, a launcher's processes end in seconds if this one is killed (Linux)."""
    line = [sys.executable, "-I", "-S", __file__, str(launcher), variables.get(MARK, "")]
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
    ) as guard:
        try:
            yield
        finally:
            guard.kill()


def main(session: str, mark: str) -> None:
    """Wait until the parent of this process is gone, then end the launcher's processes."""
    sys.stdin.read()  # its end is closed with the process that has the other one
    time.sleep(LINGER)
    end_strays(int(session), {MARK: mark})


if __name__ == "__main__":
    main(*sys.argv[1:])
