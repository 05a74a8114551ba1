"""Where a result comes from: source tree, versions, environment variables, BLAS threads (VALIDITY E7)."""

import ctypes
import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path

import fembench
from fembench.machine.cgroup import ROOT, read

PACKAGES = ("fembench", "numpy", "scipy", "mpi4py", "msgspec", "pymetis", "petsc4py")
SOURCES = ("fembench", "CMakeLists.txt", "pyproject.toml")  # what decides how the program runs
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS")
# Variables that change speed or results. What a launcher sets for every process is not among them.
_MATTER = re.compile(
    r"(OMP|KMP|GOMP|OPENBLAS|MKL|BLIS|FEMBENCH|OMPI_MCA|OMPI_ALLOW|PRTE_MCA|MPICH|MPIR_CVAR|I_MPI|UCX|FI|PETSC)_.*"
    r"|SLURM_(JOB_ID|JOB_NODELIST|NTASKS|CPUS_PER_TASK|DISTRIBUTION)"
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


def source_state(tree: Path | None = None) -> tuple[str, bool]:
    """(commit of the source tree, or 'unknown'; True unless its sources are known to be as committed).

    An installed copy that lies in no clone of its own is 'unknown', also where it lies in somebody's.
    """
    root = tree or Path(fembench.__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return "unknown", True
    commit = _git(root, "rev-parse", "HEAD")
    if not commit:
        return _head(root / ".git") or "unknown", True
    changes = _git(root, "status", "--porcelain", "--", *SOURCES)
    return commit, changes != ""


def _git(root: Path, *arguments: str) -> str | None:
    """What git prints, or None where it fails."""
    import subprocess  # here and below: only one rank needs it, and it takes its time to import

    line = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _head(folder: Path) -> str:
    """The commit that .git/HEAD names, for hosts without git."""
    head = read(folder / "HEAD")
    if not head.startswith("ref: "):
        return head
    name = head[5:]
    packed = re.search(rf"^([0-9a-f]{{40}}) {re.escape(name)}$", read(folder / "packed-refs"), re.M)
    return read(folder / name) or (packed.group(1) if packed else "")


def version_of(package: str) -> str:
    """The installed version of a package, '' where it is not installed."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def versions() -> dict[str, str]:
    """Python and the packages that decide speed and results; those that are installed."""
    found = {name: version_of(name) for name in PACKAGES}
    return {"python": platform.python_version()} | {name: v for name, v in found.items() if v}


def variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Those environment variables that matter for a run, sorted."""
    return {
        name: environment[name]
        for name in sorted(environment)
        if _MATTER.fullmatch(name) and not _SET_BY_LAUNCHER.fullmatch(name)
    }


def blas_libraries(root: Path = ROOT) -> list[str]:
    """Paths of the BLAS libraries that this process has loaded (Linux)."""
    paths = {line.split()[-1] for line in read(root / "proc/self/maps").splitlines() if "/" in line}
    return sorted(path for path in paths if _BLAS.search(Path(path).name))


def blas_threads() -> int:
    """Threads that numpy's BLAS uses here: asked of the library, else of the environment."""
    import numpy.linalg  # noqa: F401  numpy loads its BLAS with it

    answers = [n for path in blas_libraries() if (n := _ask(path))]
    if answers:
        return max(answers)
    named = [os.environ[name] for name in THREADS if os.environ.get(name, "").isdigit()]
    return int(named[0]) if named else os.cpu_count() or 1


def _ask(path: str) -> int:
    """The number of threads that a BLAS library reports; 0 where it does not answer."""
    try:
        library = ctypes.CDLL(path)
    except OSError:
        return 0
    call = next((getattr(library, name) for name in _BLAS_CALLS if hasattr(library, name)), None)
    return int(call()) if call else 0
