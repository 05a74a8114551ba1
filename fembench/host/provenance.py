"""Where a result comes from (rule E7): versions, variables, BLAS threads; see `build`.

And from which hosts: which ranks share one, and which hosts share a machine.
A host is identified by its name and by the boot of its kernel: machines may share a
name ("localhost"), and labs or containers have several on one machine.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fembench.host.cgroup import ROOT, read

if TYPE_CHECKING:
    from fembench.ranks.comm import Comm


PACKAGES = ("fembench", "numpy", "scipy", "mpi4py", "msgspec", "pymetis", "petsc4py")
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS")
# Variables that change speed or results, except those that a launcher sets for every process. SLURM_NTASKS
# is not among them: below mpiexec it counts the launcher's daemons.
_MATTER = re.compile(
    r"(OMP|KMP|GOMP|OPENBLAS|MKL|BLIS|FEMBENCH|OMPI_MCA|OMPI_ALLOW|PRTE_MCA|MPICH|MPIR_CVAR|I_MPI|UCX|FI|PETSC)_.*"
    r"|SLURM_(JOB_ID|JOB_NODELIST|CPUS_PER_TASK|DISTRIBUTION)"
    r"|LD_PRELOAD|GLIBC_TUNABLES|MALLOC_.*|PYTHONOPTIMIZE|PYTHONMALLOC"
)
_SET_BY_LAUNCHER = re.compile(
    r"OMPI_MCA_(PREFIXES|cpu_type|initial_wdir|num_procs|ess_.*|orte_.*|pmix_.*)|.*(TOKEN|SECRET|PASSWORD).*"
)
_BLAS = re.compile(r"openblas|mkl_rt|libblis|flexiblas", re.I)
_BLAS_CALLS = (
    "scipy_openblas_get_num_threads64_",
    "scipy_openblas_get_num_threads",
    "openblas_get_num_threads64_",
    "openblas_get_num_threads",
    "MKL_Get_Max_Threads",
    "bli_thread_get_num_threads",
)


def version_of(package: str) -> str:
    """The installed version of a package, '' if it is not installed."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def versions() -> dict[str, str]:
    """Versions of Python and of the installed packages that affect speed and results."""
    found = {name: version_of(name) for name in PACKAGES}
    return {"python": platform.python_version()} | {name: v for name, v in found.items() if v}


def variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment variables that matter for a run, sorted."""
    return {
        name: environment[name]
        for name in sorted(environment)
        if _MATTER.fullmatch(name) and not _SET_BY_LAUNCHER.fullmatch(name)
    }


def blas_libraries() -> list[str]:
    """Paths of the BLAS libraries that this process has loaded (Linux)."""
    paths = {line.split()[-1] for line in read(ROOT / "proc/self/maps").splitlines() if "/" in line}
    return sorted(path for path in paths if _BLAS.search(Path(path).name))


def blas_threads() -> int:
    """Threads of numpy's BLAS, as the library reports or else the environment says."""
    import numpy.linalg  # noqa: F401  numpy loads its BLAS with it

    answers = [n for path in blas_libraries() if (n := _ask(path))]
    if answers:
        return max(answers)
    named = [os.environ[name] for name in THREADS if os.environ.get(name, "").isdigit()]
    return int(named[0]) if named else os.cpu_count() or 1


def _ask(path: str) -> int:
    """The number of threads that a BLAS library reports; 0 if it reports none."""
    try:
        library = ctypes.CDLL(path)
    except OSError:
        return 0
    call = next((getattr(library, name) for name in _BLAS_CALLS if hasattr(library, name)), None)
    return int(call()) if call else 0


Key = tuple[str, str]  # a host: its name, and its machine's


def machine_key(root: Path = ROOT) -> str:
    """The same for all processes under one kernel; failing that, the host's name."""
    return read(root / "proc/sys/kernel/random/boot_id") or platform.node()


def host_key() -> Key:
    """The same for all processes on one host."""
    return platform.node(), machine_key()


def distinct_names(keys: Sequence[Key]) -> list[str]:
    """A name for each host, one for each key: a second host of one name is 'name-2'."""
    names: dict[Key, str] = {}
    taken = {name for name, _ in keys}
    for key in dict.fromkeys(keys):
        free = (f"{key[0]}-{number}" for number in itertools.count(2))
        names[key] = key[0] if key[0] not in names.values() else next(n for n in free if n not in taken)
        taken.add(names[key])
    return [names[key] for key in keys]


def host_names(comm: Comm) -> list[str]:
    """[rank] -> name of its host, unique in this job. Collective."""
    return distinct_names(comm.allgather(host_key()))
