"""Run a job of ranks to its end and return what it left.

A job and its result travel through files in a temporary folder, so success never
depends on parsing what MPI prints. If there is no result, the connections of the ranks
(`witness`) and the output say which rank failed. If hosts that a remote shell must
reach do not answer, the job is refused within 25 s (`job_watch`). A launcher that stays
for 30 s after its ranks have left with a result is ended; the result counts.
"""

import contextlib
import ctypes
import functools
import math
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from fembench.base.commands import interpreter
from fembench.base.config import convert
from fembench.base.errors import (
    AllocationLostError,
    InputError,
    RunFailedError,
    UnsharedError,
    raise_if_asked,
)
from fembench.launch.batch_systems import how_it_ended, misfit, with_next_plugin
from fembench.launch.end import diagnosis, plain
from fembench.launch.job import (
    APART,
    ERROR,
    JOB,
    REFUSED,
    RESULT,
    STARTED,
    UNSHARED,
    WITNESS,
    Started,
    StartedRank,
)
from fembench.launch.launchers import JobLine
from fembench.launch.line import environment
from fembench.launch.shared_page import shared_page
from fembench.launch.strays import end_strays, guarded, marked
from fembench.launch.watch import JobWatch, reached_by_shell
from fembench.launch.witness import Death, Witness

SCRATCH = ".job-"  # folders of running jobs begin so
TAIL = 30  # lines of output kept of a failed run
REVOKED = "revoked"  # kind of a job whose hosts the batch system took away
GLANCE = 1.0  # seconds between looks at a job
PR_SET_PDEATHSIG = 1  # linux/prctl.h
R = TypeVar("R")


@dataclass(frozen=True)
class Ended:
    """How a launcher ended."""

    status: int
    output: str  # all that it printed
    late: bool  # time ran out
    deaths: tuple[Death, ...] = ()  # of ranks with a connection, in their order


@dataclass(frozen=True)
class JobEnd(Generic[R]):
    """What a job left."""

    result: R | None  # content of its file, or what that holds
    kind: str  # "ok", "input", UNSHARED, "failed", "crashed", "killed", "timeout", "revoked"
    message: str  # one line if there is no result
    exit_status: int
    output: str  # last lines printed by the job

    def content(self) -> R:
        """The result. Raises InputError, AllocationLostError or RunFailedError without one."""
        if self.result is None:
            errors = {"input": InputError, UNSHARED: UnsharedError, REVOKED: AllocationLostError}
            if self.kind in errors:
                raise errors[self.kind](self.message)
            raise RunFailedError(self.message, self.output if self.kind == "crashed" else "")
        return self.result


def rank_program(module: str) -> tuple[str, ...]:
    """The words with which ranks run the PROGRAM of a module."""
    return "-m", "fembench.launch.rank_start", module


def run_job(
    program: Sequence[str],
    job: msgspec.Struct,
    line: JobLine,
    variables: dict[str, str],
    *,
    scratch: Path | None = None,
    timeout: float = 0.0,
    tell: Callable[[str], None] | None = None,
    tail: int = TAIL,
    warn: bool = True,
) -> JobEnd[bytes]:
    """Run a Python program on the ranks that `line` starts; see `serve.py`.

    `program`: a `rank_program`, or (FILE,). `scratch`: a folder that rank 0's
    host sees, too. `timeout` in s, 0: none. `tell` gets the ranks' lines of
    progress meanwhile. `tail`: lines of output to keep. `warn` of what slows the
    hosts. A job with a `launcher` learns the line. If srun's plugin does not
    fit, the next one is tried.
    """
    if "launcher" in job.__struct_fields__:
        job = msgspec.structs.replace(job, launcher=str(line))
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=scratch) as name:
        folder = Path(name).absolute()  # launchers may start ranks elsewhere
        (folder / JOB).write_bytes(msgspec.json.encode(job))
        words = line.of([*interpreter(), *program, str(folder)], folder)
        with Witness(remote=bool(line.host_files)) as witness, shared_page(folder) as page:
            (folder / WITNESS).write_bytes(msgspec.json.encode(witness.at))
            hosts = reached_by_shell(line.host_files, line.launcher.name, variables)
            watch = JobWatch(folder, hosts, witness, tell, warn, page)
            is_over = functools.partial(watch.is_over, variables)
            # if Intel's mpiexec is asked to end, its proxies spin for ever; a kill ends both, and
            # a guard what it leaves
            intel = line.launcher.name == "intelmpi"
            by = signal.SIGKILL if intel and not hosts else signal.SIGTERM
            guard = bool(hosts) or intel
            ended = run_ranks(words, variables, timeout, is_over, guard=guard, ends_by=by)
        unprinted = [words for words in witness.words if words not in ended.output]
        output = "\n".join([ended.output, *unprinted])
        ended = replace(ended, output=output, deaths=tuple(witness.deaths))
        output = "\n".join(ended.output.splitlines()[-tail:])
        os.listdir(folder)  # on NFS, this shows files of other hosts
        if (folder / RESULT).exists():
            return JobEnd((folder / RESULT).read_bytes(), "ok", "", 0, output)
        kind, message = _why_nothing(folder, ended, timeout, line.program, watch.refusal)
    if kind == APART and (other := with_next_plugin(line)):
        return run_job(
            program,
            job,
            other,
            variables,
            scratch=scratch,
            timeout=timeout,
            tell=tell,
            tail=tail,
            warn=warn,
        )
    if kind == APART:
        kind, message = "input", f"{message}: {misfit(line)}"
    return JobEnd(None, kind, message, 2 if kind in (*REFUSED, "failed") else ended.status, output)


def measure(
    module: str,
    job: msgspec.Struct,
    of: type[R],
    line: JobLine,
    *,
    solver: str = "own",
    asleep: bool = False,
    scratch: Path | None = None,
    timeout: float = 0.0,
    tell: Callable[[str], None] | None = None,
    warn: bool = True,
) -> R:
    """The result of a module's PROGRAM on the ranks that `line` starts; see `run_job`.

    Raises InputError, or RunFailedError with what the job printed, if there is no result.
    """
    variables = environment(line, solver, asleep=asleep)
    program = rank_program(module)
    end = run_job(program, job, line, variables, scratch=scratch, timeout=timeout, tell=tell, warn=warn)
    return convert(msgspec.json.decode(end.content()), of, where=module)


def _why_nothing(
    folder: Path,
    ended: Ended,
    timeout: float,
    launcher: str,
    refusal: str,
) -> tuple[str, str]:
    """(kind as JobEnd.kind or APART, one line) for a job without a result in its folder.

    `launcher`: its program. `refusal`: why the job cannot start; or "".
    """
    if taken := how_it_ended(ended.output):
        return REVOKED, taken
    if refusal:
        return "input", refusal
    error = folder / ERROR
    if error.exists():
        kind, message = error.read_text().split("\n", 1)
        return kind, message
    if ended.late:
        return "timeout", f"no result after {timeout:g} s: ended"
    started = _started(folder)
    return diagnosis(ended.status, ended.output, started, ended.deaths, launcher)


def _started(folder: Path) -> Sequence[StartedRank]:
    """[rank] -> where it was started; () if the job did not come that far."""
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode((folder / STARTED).read_bytes(), type=Started).ranks
    return ()


def run_ranks(
    line: list[str],
    variables: dict[str, str],
    timeout: float = 0.0,
    is_over: Callable[[], bool] = lambda: False,
    glance: float = GLANCE,
    *,
    guard: bool = False,
    ends_by: signal.Signals = signal.SIGTERM,
) -> Ended:
    """Run a launcher to completion; all that it started ends with it.

    `is_over` is asked every `glance` seconds, and once more at the end; if so, the
    launcher is ended. `guard`: all that it started also ends if this process is killed.
    `ends_by`: what the launcher gets then.
    """
    variables = marked(variables)
    with tempfile.TemporaryFile() as sink:
        process = subprocess.Popen(
            line,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_tie_to(os.getpid(), ends_by) if sys.platform == "linux" else None,
        )
        guarding = guarded(process.pid, variables) if guard and sys.platform == "linux" else nullcontext()
        try:
            with guarding:
                late = not _wait(process, timeout or math.inf, is_over, glance)
        finally:
            _end_group(process, variables)
        sink.seek(0)
        return Ended(process.returncode, plain(sink.read().decode(errors="replace")), late)


def _wait(process: subprocess.Popen, timeout: float, is_over: Callable[[], bool], glance: float) -> bool:
    """Whether the process ended in time. Raises EndedError if a signal ended this one."""
    deadline = time.monotonic() + timeout
    with _end_of(process) as ends_within:
        while not is_over():
            raise_if_asked()
            left = deadline - time.monotonic()
            if ends_within(min(max(left, 0.0), glance)):
                is_over()
                return True
            if left <= glance:
                return False
    return True


@contextlib.contextmanager
def _end_of(process: subprocess.Popen) -> Iterator[Callable[[float], bool]]:
    """A function: whether the process ends within the given seconds of sleep."""
    try:
        handle = os.pidfd_open(process.pid)  # Linux 5.3
    except (AttributeError, OSError):
        handle = None
    poll = select.poll()
    if handle is not None:
        poll.register(handle, select.POLLIN)

    def ends_within(seconds: float) -> bool:
        if handle is not None:
            poll.poll(1000 * seconds)
            return process.poll() is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        return process.returncode is not None

    try:
        yield ends_within
    finally:
        if handle is not None:
            os.close(handle)


def _tie_to(parent: int, ends_by: signal.Signals) -> Callable[[], None]:
    """A function that a launcher calls first, to get this signal if `parent` ends."""
    prctl = ctypes.CDLL(None).prctl

    def tie() -> None:
        prctl(PR_SET_PDEATHSIG, ends_by)
        if os.getppid() != parent:  # the parent ended before the line above
            os._exit(1)

    return tie


def _end_group(process: subprocess.Popen, variables: Mapping[str, str]) -> None:
    """Ask a launcher that runs to stop its ranks; then kill what is left of its group."""
    ran = process.poll() is None
    if ran:
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
    if ran or process.returncode < 0:
        left = Path(variables.get("TMPDIR", "/tmp"), f"ompi.{process.pid}")
        shutil.rmtree(left, ignore_errors=True)  # else the next prterun of this number ends at once
        if sys.platform == "linux":
            end_strays(process.pid, variables)
