"""Start a script under mpiexec from a serial test."""

import os
import subprocess
import sys
from pathlib import Path

from fembench.launch.launcher import command_line, environment, find_mpiexec, flavour

TESTS = Path(__file__).parent


def run_job(script, ranks, *arguments, timeout=170):
    """Standard output of `script` on `ranks` ranks; if it fails, the test fails with what it printed."""
    mpiexec = find_mpiexec()
    kind = flavour(mpiexec)
    line = [*command_line(mpiexec, kind, ranks), sys.executable, str(TESTS / script), *map(str, arguments)]
    done = subprocess.run(
        line, env=environment(kind), capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def cli(*arguments, cwd=None, timeout=100, **variables):
    """`fembench ARGUMENTS` as a user types it: the finished process."""
    return subprocess.run(
        [sys.executable, "-m", "fembench", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=cwd,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
    )
