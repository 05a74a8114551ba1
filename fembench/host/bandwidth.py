"""Memory bandwidth of this process: the roof of a product that must read its matrix (rule B3).

`read` sums one array of doubles; `triad` computes a = b + s c, counted as STREAM does: 24 bytes per entry,
without the read of a before it is written. Ranks share the memory of a host: the caller lets all of them
measure at once, after a barrier.
"""

import itertools
import time
from collections.abc import Callable

from fembench.kernels.backend import kernels
from fembench.records.record import SMALLEST, clamped

DOUBLE = 8
LARGEST = 1 << 27  # bytes: outside the caches of most processors, and quick to allocate
SECONDS = 0.05  # per kernel
FEWEST = 3  # batches, however long they take
TRIADS, BRIEF = 4, 0.01  # repeats in turn, seconds of each
BATCH = 5e-5  # seconds that calls fill between two readings of the clock


def roof(n_bytes: int, seconds: float = SECONDS) -> float:
    """Bytes per second at which this process can go through `n_bytes` of memory over and over.

    The better of read and triad, on arrays of `n_bytes` in all: no product reads its matrix faster.
    """
    wanted = min(max(n_bytes, SMALLEST), LARGEST)
    n, third = wanted // DOUBLE, wanted // (3 * DOUBLE)  # one array is read, three are in a triad
    read = DOUBLE * n / _best(kernels.Stream(n).read, seconds)
    triad = kernels.Triad(third)
    return max(read, 3 * DOUBLE * third / _best(lambda: triad.run(0.5), seconds))


def triads(n_bytes: float, times: int = TRIADS) -> tuple[float, ...]:
    """Bytes per second of `times` triads, in turn, with arrays of about `n_bytes` in all.

    A single triad may coincide with a slow second of its core; the spread of many shows that.
    """
    n = clamped(n_bytes) // (3 * DOUBLE)
    triad = kernels.Triad(n)
    return tuple(3 * DOUBLE * n / _best(lambda: triad.run(0.5), BRIEF) for _ in range(times))


def _best(call: Callable[[], object], seconds: float) -> float:
    """Seconds of one call: the least over batches that together fill `seconds`."""
    clock = time.perf_counter
    begin = clock()
    call()  # brings its arrays into the cache if they fit
    calls = max(1, int(BATCH / max(clock() - begin, 1e-9)))
    best, batches = float("inf"), 0
    start = clock()
    while batches < FEWEST or clock() - start < seconds:
        begin = clock()
        for _ in itertools.repeat(None, calls):
            call()
        best = min(best, clock() - begin)
        batches += 1
    return best / calls
