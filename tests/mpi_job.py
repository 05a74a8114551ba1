"""Start a script under mpiexec from a serial test."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from fembench.launch.line import environment, job_line

TESTS = Path(__file__).parent


def run_job(script, ranks, *arguments, timeout=170):
    """Standard output of `script` on `ranks` ranks; if it fails, the test fails with what it printed."""
    line = job_line(ranks)
    full = line.of([sys.executable, str(TESTS / script), *map(str, arguments)], Path(tempfile.gettempdir()))
    done = subprocess.run(
        full, env=environment(line), capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def cli(*arguments, cwd=None, timeout=100, **variables):
    """`fembench ARGUMENTS` as a user types it: the finished process, without the progress and the note that a
    busy machine makes it tell."""
    done = subprocess.run(
        [sys.executable, "-m", "fembench", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=cwd,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
    )
    done.stderr = re.sub(r"^(.* … \d+:\d\d|note: load: .*)\n", "", done.stderr, flags=re.MULTILINE)
    return done


def measured(done):
    """Whether a command measured; on a machine too busy its record is INVALID, and the status 1."""
    return done.returncode == 0 or (done.returncode == 1 and "INVALID" in done.stdout)
