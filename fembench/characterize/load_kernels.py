"""Three kernels that measure the slowness H of a host (Mendes 2004, 4.2.2), in ms each.

    increment   a counted loop that adds one to a plain integer
    matmul      the product of two matrices of fixed size
    gauss       elimination of a dense system

They run in the interpreter and in numpy, so only their relative times are meaningful.
Emulation and load slow them down like any other code.
"""

import time
from collections.abc import Callable

import numpy as np

from fembench.host.host import load_average, running
from fembench.records.network import KernelTime, RankLoad
from fembench.synthetic.slowness import Slowness

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
    start, used = time.perf_counter_ns(), time.thread_time_ns()
    slowness.begin()
    call()
    used = time.thread_time_ns() - used
    slowness.end()
    return 1e-9 * (time.perf_counter_ns() - start), 1e-9 * used


def load_of(rank: int) -> RankLoad:
    """The load that the system reports; without one, queue 1 (this rank) and load 0."""
    return RankLoad(rank=rank, queue=float(running() or 1), load=load_average())
