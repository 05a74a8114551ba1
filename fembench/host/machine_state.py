"""The state of a host at a moment: how fast a core computes, and how fast its memory is.

The same arrays everywhere and at any time, on one rank while the others sleep, so that
two moments can be compared whatever the number of ranks: what differs is the clock rate
of the core, or what others take of a shared cache or of the memory.

Clock rate and thermal throttling, where the kernel shows them;
seldom in virtual machines.

Memory bandwidth of this process: the roof of a product that must read its matrix (rule
B3).

`read` sums one array of doubles; `triad` computes a = b + s c, counted as STREAM does:
24 bytes per entry, without the read of a before it is written. Ranks share the memory
of a host: the caller lets all of them measure at once, after a barrier."""

import itertools
import re
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from fembench.host.cgroup import ROOT, read
from fembench.host.host import CPUS
from fembench.host.provenance import host_names
from fembench.kernels.backend import kernels
from fembench.ranks.comm import Comm, doze
from fembench.records.record import MODEST, SMALLEST, StateKind, StateReading, clamped

DOUBLE = 8
LARGEST = 1 << 27  # bytes: outside the caches of most processors, and quick to allocate
SECONDS = 0.05  # per kernel
FEWEST = 3  # batches, however long they take
TRIADS, BRIEF = 4, 0.01  # repeats in turn, seconds of each
BATCH = 5e-5  # seconds that calls fill between two readings of the clock


def roof(n_bytes: int, seconds: float = SECONDS) -> float:
    """Bytes per second at which this process goes through `n_bytes` of memory.

    The better of read and triad, on `n_bytes` in all: no product reads its matrix faster.
    """
    wanted = min(max(n_bytes, SMALLEST), LARGEST)
    n, third = wanted // DOUBLE, wanted // (3 * DOUBLE)  # one array read, three in a triad
    read = DOUBLE * n / _best(kernels.Stream(n).read, seconds)
    triad = kernels.Triad(third)
    return max(read, 3 * DOUBLE * third / _best(lambda: triad.run(0.5), seconds))


def triads(n_bytes: float, times: int = TRIADS, *, alone: bool = False) -> tuple[float, ...]:
    """Bytes per second of `times` triads, in turn, with arrays of about `n_bytes` in all.

    A single triad may coincide with a slow second of its core; the
    spread of many shows that. alone: one thread, however many the rank has.
    """
    n = clamped(n_bytes) // (3 * DOUBLE)
    triad = kernels.Triad(n, alone)
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


TIMES = 3  # triads of 10 ms
SIZES: dict[StateKind, int] = {"core": SMALLEST, "memory": MODEST}  # bytes


class HostState(NamedTuple):
    """Bytes per second of a triad on the host's first rank, while the others sleep."""

    core: float  # in the first-level cache
    memory: float  # over 32 MiB


def host_state(host: Comm) -> HostState:
    """The state of a host now, alike on all its ranks, in 0.1 s. Collective over `host`."""
    doze(host, 0.0)
    sizes = SIZES.values() if host.rank == 0 else ()
    found = [float(np.median(triads(n, TIMES, alone=True))) for n in sizes]
    doze(host, 0.0)
    return HostState(*host.bcast(found))


def state_here(comm: Comm) -> HostState:
    """The state of this rank's host now. Collective over all ranks."""
    names = host_names(comm)
    host = cast(Comm, comm.Split(names.index(names[comm.rank]), comm.rank))
    found = host_state(host)
    host.Free()
    return found


def readings(hosts: Sequence[str], states: Sequence[Sequence[HostState]]) -> tuple[StateReading, ...]:
    """Two readings of each moment on each host; hosts[rank], states[rank][moment]."""
    return tuple(
        StateReading(host=name, what=what, ranks=1, n_bytes=SIZES[what], speed=speed)
        for name in dict.fromkeys(hosts)
        for state in states[hosts.index(name)]
        for what, speed in zip(SIZES, state)
    )


KHZ, MHZ = 1e3, 1e6
UNREADABLE = -1  # events, where there are no counters


def clock_rate(cpus: Collection[int], root: Path = ROOT) -> float:
    """The clock rate in Hz now, the median of these CPUs; 0 where it is not shown."""
    texts = [read(root / CPUS / f"cpu{cpu}/cpufreq/scaling_cur_freq") for cpu in cpus]
    return KHZ * float(np.median([int(text) for text in texts if text.isdigit()] or [0]))


def listed_clock_rate(root: Path = ROOT) -> float:
    """The clock rate in Hz of /proc/cpuinfo, the median of all CPUs; 0 if none.

    Reading takes milliseconds on large hosts. Virtual machines list the nominal rate.
    """
    found = re.findall(r"^cpu MHz\s*:\s*([0-9.]+)\s*$", read(root / "proc/cpuinfo"), re.M)
    rates = [float(text) for text in found if text.count(".") < 2 and text != "."]
    return MHZ * float(np.median(rates or [0.0]))


def throttle_events(root: Path = ROOT) -> int:
    """Thermal throttling events since boot, over all cores and packages of the host.

    Threads of a core, and cores of a package, repeat one counter. UNREADABLE without.
    """
    folders = sorted((root / CPUS).glob("cpu[0-9]*"))
    cores, packages = dict[str, int](), dict[str, int]()
    for folder in folders:
        core = read(folder / "topology/thread_siblings_list") or folder.name
        package = read(folder / "topology/physical_package_id")
        for name, key, known in (("core", core, cores), ("package", package, packages)):
            text = read(folder / f"thermal_throttle/{name}_throttle_count")
            if text.isdigit():
                known[key] = max(int(text), known.get(key, 0))
    if not cores and not packages:
        return UNREADABLE
    return sum(cores.values()) + sum(packages.values())
