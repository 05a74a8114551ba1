"""The costs of messages between ranks: measured at the start, or from a profile."""

import time

import numpy as np

from fembench.balance.observation import PairCosts
from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.host.provenance import host_names
from fembench.ranks.comm import Comm, on_root
from fembench.records.hlogp import message_cost
from fembench.records.network import Network, class_of
from fembench.records.profile import NO_NETWORK, Profile, load_profile

SMALL, LARGE = 8, 1 << 18  # bytes
PROBES = 8


def probe(comm: Comm) -> PairCosts:
    """The cost of messages between every two ranks, P/2 pairs at a time. Collective.

    Both exchange them at once; the best of a few.
    """
    buffers = [(np.zeros(n, np.uint8), np.empty(n, np.uint8)) for n in (SMALL, LARGE)]
    best = np.zeros((2, comm.size))
    for other in _rounds(comm.rank, comm.size):
        comm.Barrier()
        if other is not None:
            best[:, other] = [_exchange(comm, other, *pair) for pair in buffers]
    small, large = np.array(comm.allgather(best)).swapaxes(0, 1)
    return _line(small, large)


def _rounds(rank: int, size: int) -> list[int | None]:
    """A rank's partner in each round of a tournament of all pairs; None: it rests."""
    n = size + size % 2
    partners = [_partner(rank, k, n) for k in range(n - 1)]
    return [other if other < size else None for other in partners]


def _partner(rank: int, k: int, n: int) -> int:
    """Round k of the circle method, n even: i, j < n - 1 meet if i + j = k mod n - 1."""
    other = (k - rank) % (n - 1)
    if rank == n - 1:
        return next(i for i in range(n - 1) if 2 * i % (n - 1) == k)
    return n - 1 if other == rank else other


def _exchange(comm: Comm, other: int, out: np.ndarray, into: np.ndarray) -> float:
    """Seconds of an exchange with a rank, the best of a few."""
    best = float("inf")
    for _ in range(PROBES):
        begin = time.perf_counter()
        comm.Sendrecv(out, other, 9, into, other, 9)
        best = min(best, time.perf_counter() - begin)
    return best


def _line(small: F64, large: F64) -> PairCosts:
    """The line through the seconds of messages of SMALL and LARGE bytes, (P, P)."""
    return PairCosts(small, np.maximum(large - small, 0.0) / (LARGE - SMALL))


def link_costs(comm: Comm, profile: str) -> PairCosts:
    """The costs in this machine profile; measured if "". Collective; raises InputError."""
    if not profile:
        return probe(comm)
    hosts = tuple(host_names(comm))
    found = on_root(comm, lambda: of_profile(load_profile(profile), hosts, profile))
    return comm.bcast(found)


def of_profile(profile: Profile, hosts: tuple[str, ...], where: str) -> PairCosts:
    """The costs in a profile for ranks on these hosts, by name. Raises InputError."""
    if profile.network is None or not profile.network.classes:
        raise InputError(f"{where}: the profile has {NO_NETWORK}")
    known = {host.name: k for k, host in reversed(list(enumerate(profile.environment.hosts)))}
    unknown = next((host for host in hosts if host not in known), None)
    if unknown is not None:
        raise InputError(f"{where}: no host {unknown}; expected all hosts of the run")
    places = [known[host] for host in hosts]
    return _line(*(_table(profile.network, places, n) for n in (SMALL, LARGE)))


def _table(network: Network, places: list[int], n_bytes: int) -> F64:
    """(P, P) seconds of a message of this size to each rank from each, by their hosts."""
    kinds = {
        (to, source): message_cost(class_of(network, source, to), n_bytes, same_host=to == source).total
        for to in set(places)
        for source in set(places)
    }
    return np.array([[kinds[to, source] for source in places] for to in places])
