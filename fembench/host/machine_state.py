"""The state of a host at a moment: how fast a core computes, and how fast its memory is.

The same arrays everywhere and at any time, on one rank while the others sleep, so that two moments can be
compared whatever the number of ranks: what differs is the clock rate of the core, or what others take of a
shared cache or of the memory.
"""

import statistics
from collections.abc import Sequence
from typing import NamedTuple, cast

from fembench.host.bandwidth import triads
from fembench.host.where import host_names
from fembench.ranks.agree import doze
from fembench.ranks.comm import Comm
from fembench.records.record import StateKind, StateReading
from fembench.records.triads import MODEST, SMALLEST

TIMES = 3  # triads of 10 ms
SIZES: dict[StateKind, int] = {"core": SMALLEST, "memory": MODEST}  # bytes


class HostState(NamedTuple):
    """Bytes per second of a triad on the host's first rank, while the others sleep."""

    core: float  # in the first-level cache
    memory: float  # over 32 MiB


def host_state(host: Comm) -> HostState:
    """The state of a host now, the same on all its ranks; takes 0.1 s. Collective over `host`."""
    doze(host, 0.0)
    found = [statistics.median(triads(n, TIMES)) for n in SIZES.values()] if host.rank == 0 else None
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
    """Two readings of every moment on every host; hosts[rank], states[rank][moment], equal on a host."""
    return tuple(
        StateReading(host=name, what=what, ranks=1, n_bytes=SIZES[what], speed=speed)
        for name in dict.fromkeys(hosts)
        for state in states[hosts.index(name)]
        for what, speed in zip(SIZES, state)
    )
