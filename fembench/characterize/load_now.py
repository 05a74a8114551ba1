"""The current load of hosts: three kernels, one rank per host.

They measure the slowness H of a host (Mendes 2004, 4.2.2), in ms each.

    increment   a counted loop that adds one to a plain integer
    matmul      the product of two matrices of fixed size
    gauss       elimination of a dense system

They run in the interpreter and in numpy, so only their relative times are meaningful.
Emulation and load slow them down like any other code.
"""

import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from fembench.base.errors import FembenchError, InputError
from fembench.host.host import load_average, running
from fembench.launch.hosts import HostSlots
from fembench.launch.job import RankProgram
from fembench.launch.line import job_line
from fembench.launch.run_job import measure
from fembench.records.network import HostLoad, KernelTime, RankLoad
from fembench.synthetic.slowness import FULL_SPEED, Slowness

COUNT, MATMUL, GAUSS = 60_000, 160, 90
SEED = 1


def increment() -> int:
    """Count to COUNT."""
    value = 0
    while value < COUNT:
        value += 1
    return value


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product a b of two (MATMUL, MATMUL) matrices."""
    return np.asarray(a @ b)


def gauss(a: np.ndarray) -> np.ndarray:
    """(n,) solution of an (n, n + 1) augmented system, by elimination without pivoting."""
    a, n = a.copy(), len(a)
    for k in range(n - 1):
        a[k + 1 :, k:] -= np.outer(a[k + 1 :, k] / a[k, k], a[k, k:])
    x = np.zeros(n)
    for k in reversed(range(n)):
        x[k] = (a[k, n] - a[k, k + 1 : n] @ x[k + 1 :]) / a[k, k]
    return x


def slowness_kernels() -> dict[str, Callable[[], object]]:
    """The kernels with their data, by name."""
    rng = np.random.default_rng(SEED)
    a, b = rng.random((2, MATMUL, MATMUL))
    system = np.hstack([rng.random((GAUSS, GAUSS)) + GAUSS * np.eye(GAUSS), np.ones((GAUSS, 1))])
    return {"increment": increment, "matmul": lambda: matmul(a, b), "gauss": lambda: gauss(system)}


def kernel_times(rank: int, slowness: Slowness, repeats: int) -> list[KernelTime]:
    """Median times over the repeats, on a rank that may be emulated as slower."""
    found = []
    for name, call in slowness_kernels().items():
        call()
        slowness.new_work(name)
        both = np.median([_timed(slowness, call) for _ in range(repeats)], axis=0)
        found.append(KernelTime(rank=rank, kernel=name, seconds=float(both[0]), cpu=float(both[1])))
    return found


def _timed(slowness: Slowness, call: Callable[[], object]) -> tuple[float, float]:
    """(elapsed seconds, seconds of processor time) of a call."""
    start = time.perf_counter_ns()
    used = time.thread_time_ns()
    slowness.begin()
    call()
    used = time.thread_time_ns() - used
    slowness.end()
    return 1e-9 * (time.perf_counter_ns() - start), 1e-9 * used


def load_of(rank: int) -> RankLoad:
    """The load that the system reports; without one, queue 1 (this rank) and load 0."""
    return RankLoad(rank=rank, queue=float(running() or 1), load=load_average())


SAMPLES = 8
REPEATS = 3  # runs of the kernels in each
PAUSE = 0.2  # seconds between samples
PATIENCE = 60.0  # seconds after which a host counts as unreachable


class LoadJob(msgspec.Struct, frozen=True):
    """The job for its rank: no parameters."""


def loads_of(hosts: Sequence[str], scratch: Path, say: Callable[[str], None]) -> list[list[HostLoad]]:
    """Samples of the load of every host that can be reached; `say` names the others.

    `scratch`: a folder visible to all hosts. Raises InputError if none can be reached.
    """
    found = []
    for host in hosts:
        try:
            found.append(measured_here() if host == platform.node() else measured_on(host, scratch))
        except FembenchError as error:
            say(f"{host}: not reached, keeps the speeds of the profile: {error}")
    if not found:
        raise InputError(f"none of {', '.join(hosts)} could be reached; expected at least one")
    return found


def measured_here() -> list[HostLoad]:
    """Samples of the load of this host; a single one may not be typical."""
    return [_sample(PAUSE * (k > 0)) for k in range(SAMPLES)]


def _sample(pause: float) -> HostLoad:
    time.sleep(pause)
    took = kernel_times(0, FULL_SPEED, REPEATS)
    return HostLoad(platform.node(), sum(k.seconds for k in took), sum(k.cpu for k in took))


def measured_on(host: str, scratch: Path) -> list[HostLoad]:
    """Samples of another host's load, by a rank there. `scratch`: a folder it sees.

    Raises InputError, or RunFailedError if it cannot be reached.
    """
    line = job_line(1, hosts=[HostSlots(host, 1)])
    program = "fembench.characterize.load_now"
    of = list[HostLoad]
    return measure(program, LoadJob(), of, line, scratch=scratch, timeout=PATIENCE, warn=False)


PROGRAM = RankProgram(LoadJob, lambda job: 1, lambda comm, job, tell: measured_here())
