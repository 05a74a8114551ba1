"""Run a job of ranks to its end and return what it left.

A job and its result travel through files in a temporary folder, so success never depends on parsing what MPI
prints. A job without a result crashed, and its output says which rank failed.
"""

import contextlib
import ctypes
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fembench.base.errors import AllocationLostError, InputError, RunFailedError
from fembench.launch.diagnosis import Ended, plain, why_nothing
from fembench.launch.ended import how_it_ended
from fembench.launch.job import APART, JOB, PROGRESS
from fembench.launch.line import JobLine
from fembench.launch.misfit import misfit, with_next_plugin

SCRATCH = ".job-"  # folders of running jobs begin so
TAIL = 30  # lines of output kept of a failed run
REVOKED = "revoked"  # kind of a job whose hosts the batch system took away
GLANCE = 0.2  # seconds between two looks at a running job
PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass(frozen=True)
class JobEnd:
    """What a job left."""

    result: bytes | None  # content of its file
    kind: str  # "ok", "input", "failed", "crashed", "killed", "timeout", "revoked"
    message: str  # one line if there is no result
    exit_status: int
    output: str  # last lines printed by the job

    def content(self) -> bytes:
        """The result. Raises InputError, AllocationLostError or RunFailedError if there is none."""
        if self.result is None:
            errors = {"input": InputError, REVOKED: AllocationLostError}
            raise errors.get(self.kind, RunFailedError)(self.message)
        return self.result


def run_job(
    program: Sequence[str],
    job: msgspec.Struct,
    result: str,
    line: JobLine,
    variables: dict[str, str],
    *,
    scratch: Path | None = None,
    timeout: float = 0.0,
    tell: Callable[[str], None] | None = None,
    tail: int = TAIL,
) -> JobEnd:
    """Run a Python program on the ranks that `line` starts; see `serve.py`.

    `program`: ("-m", MODULE) or (FILE,). `result`: the file that the ranks leave. `scratch`: a folder also
    visible to rank 0's host. `timeout` in s, 0: none. `tell` gets the ranks' lines of progress meanwhile.
    `tail`: lines of output to keep. If srun's plugin does not fit, the next one is tried.
    """
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=scratch) as name:
        folder = Path(name).absolute()  # not all launchers start ranks in the folder of this process
        (folder / JOB).write_bytes(msgspec.json.encode(job))
        watch = _watch(folder / PROGRESS, tell) if tell else None
        ended = run_ranks(line.of([sys.executable, *program, str(folder)], folder), variables, timeout, watch)
        output = "\n".join(ended.output.splitlines()[-tail:])
        os.listdir(folder)  # on NFS, files of other hosts appear when the folder is read again
        if (folder / result).exists():
            return JobEnd((folder / result).read_bytes(), "ok", "", 0, output)
        kind, message = why_nothing(folder, ended, timeout)
        taken = how_it_ended(ended.output)
        if taken:
            kind, message = REVOKED, taken
    if kind == APART and (other := with_next_plugin(line)):
        job = _started_by(job, other)
        return run_job(
            program, job, result, other, variables, scratch=scratch, timeout=timeout, tell=tell, tail=tail
        )
    if kind == APART:
        kind, message = "input", f"{message}: {misfit(line)}"
    return JobEnd(None, kind, message, 2 if kind in ("input", "failed") else ended.status, output)


def _started_by(job: msgspec.Struct, line: JobLine) -> msgspec.Struct:
    """The job, whose record will name this line."""
    if "launcher" not in job.__struct_fields__:
        return job
    return msgspec.structs.replace(job, launcher=str(line))


def _watch(path: Path, tell: Callable[[str], None]) -> Callable[[], None]:
    """A function that passes on the complete lines added to a file since the last call."""
    told = 0

    def look() -> None:
        nonlocal told
        if not path.exists():
            return
        *lines, _ = path.read_text(encoding="utf-8").split("\n")
        for line in lines[told:]:
            tell(line)
        told = len(lines)

    return look


def run_ranks(
    line: list[str],
    variables: dict[str, str],
    timeout: float = 0.0,
    watch: Callable[[], None] | None = None,
) -> Ended:
    """Run a launcher to completion; its whole process group ends with it. `watch` is called while it runs."""
    with tempfile.TemporaryFile() as sink:
        process = subprocess.Popen(
            line,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_tie_to(os.getpid()) if sys.platform == "linux" else None,
        )
        try:
            late = not _wait(process, timeout or math.inf, watch)
        finally:
            _end_group(process)
        sink.seek(0)
        return Ended(process.returncode, plain(sink.read().decode(errors="replace")), late)


def _wait(process: subprocess.Popen, timeout: float, watch: Callable[[], None] | None) -> bool:
    """Whether the process ended in time."""
    deadline = time.monotonic() + timeout
    while True:
        left = deadline - time.monotonic()
        slice_ = min(left, GLANCE) if watch else left
        try:
            process.wait(None if slice_ == math.inf else max(slice_, 0.0))
        except subprocess.TimeoutExpired:
            if slice_ == left:
                return False
        else:
            return True
        finally:
            if watch:
                watch()


def _tie_to(parent: int) -> Callable[[], None]:
    """A function that a launcher calls before it starts, so that it is terminated when `parent` ends."""
    prctl = ctypes.CDLL(None).prctl

    def tie() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # the parent ended before the line above
            os._exit(1)

    return tie


def _end_group(process: subprocess.Popen) -> None:
    """Ask the launcher to stop its ranks, then kill it."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
    for _ in range(2):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            break
        time.sleep(0.05)
    process.wait()
