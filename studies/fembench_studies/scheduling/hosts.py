"""Hosts for task graphs: given by speeds and links, or the ranks of a profile."""

from collections.abc import Sequence

from fembench.errors import InputError
from fembench.model.heterogeneity import from_product
from fembench.model.iteration_time import CandidateHost
from fembench.model.platform import Platform
from fembench.records.hlogp import MessageCost, message_cost
from fembench.records.profile import Profile, host_names


def given_hosts(
    hosts: Sequence[CandidateHost], between: tuple[float, float], inside: tuple[float, float], overhead: float
) -> Platform:
    """One processor per slot; if a host has more slots than cores, its slots share the cores.

    Links are (latency in seconds, bytes per second); `overhead`: Os and Or, seconds.
    """
    places = [(h, p) for p, h in enumerate(hosts) for _ in range(h.slots)]

    def message(size: float, source: int, target: int) -> MessageCost:
        if source == target:
            return MessageCost(0.0, 0.0, 0.0)
        latency, bandwidth = inside if places[source][1] == places[target][1] else between
        return MessageCost(overhead, latency + size / bandwidth, overhead)

    slowness = tuple(h.slowness * max(1.0, h.slots / h.cores) for h, _ in places)
    return Platform(slowness, message, _numbered([h.name for h, _ in places]))


def ranks_of(profile: Profile, where: str) -> Platform:
    """The ranks of a profile: H from the matrix-vector product, 1 for the fastest; measured Os, L and Or.

    Raises InputError.
    """
    network, placed = profile.network, profile.environment.rank_host
    if network is None:
        raise InputError(
            f"{where}: no network in the profile; expected one of fembench characterize --network"
        )

    def message(size: float, source: int, target: int) -> MessageCost:
        if source == target:
            return MessageCost(0.0, 0.0, 0.0)
        return message_cost(network.classes[network.pair_class[placed[source]][placed[target]]], size)

    H = from_product(profile)
    return Platform(tuple(map(float, H)), message, _numbered(host_names(profile)))


def _numbered(names: Sequence[str]) -> tuple[str, ...]:
    """'a' for the only processor of a host, 'a/0', 'a/1' … for several."""
    return tuple(
        name if names.count(name) == 1 else f"{name}/{list(names[:k]).count(name)}"
        for k, name in enumerate(names)
    )
