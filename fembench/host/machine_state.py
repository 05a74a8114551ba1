"""The state of a host at a moment: how fast its cores compute, and how fast its memory is.

The same arrays everywhere and at any time, so that two moments can be compared: what differs is the clock
rate of the cores, or what others take of a shared cache or of the memory.
"""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from fembench.host.bandwidth import triads
from fembench.host.where import host_names
from fembench.ranks.agree import doze
from fembench.ranks.comm import Comm
from fembench.records.record import StateReading
from fembench.records.triads import MODEST, SMALLEST

TIMES = 3  # triads of 10 ms


class HostState(NamedTuple):
    """Bytes per second of a triad."""

    core: float  # in the first-level cache, on all ranks of the host at once; their median
    memory: float  # over 32 MiB, on the first rank of the host, while the others sleep


def host_state(host: Comm) -> HostState:
    """The state of a host now, the same on all its ranks; a tenth of a second. Collective over `host`."""
    doze(host, 0.0)
    cores = host.allgather(statistics.median(triads(SMALLEST, TIMES)))
    doze(host, 0.0)
    memory = statistics.median(triads(MODEST, TIMES)) if host.rank == 0 else 0.0
    doze(host, 0.0)
    return HostState(statistics.median(cores), host.bcast(memory))


def state_here(comm: Comm) -> HostState:
    """The state of this rank's host now. Collective over all ranks."""
    names = host_names(comm)
    host = comm.Split(names.index(names[comm.rank]), comm.rank)
    found = host_state(host)
    host.Free()
    return found


def readings(hosts: Sequence[str], states: Sequence[Sequence[HostState]]) -> tuple[StateReading, ...]:
    """Two readings of every moment on every host; hosts[rank], states[rank][moment], equal on a host."""
    return tuple(
        StateReading(host=name, what=what, ranks=ranks, n_bytes=n_bytes, speed=getattr(state, what))
        for name in dict.fromkeys(hosts)
        for state in states[hosts.index(name)]
        for what, ranks, n_bytes in (("core", hosts.count(name), SMALLEST), ("memory", 1, MODEST))
    )
