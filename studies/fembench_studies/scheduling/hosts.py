"""Hosts for task graphs: given by speeds and links, or the ranks of a profile."""

import re
from collections.abc import Sequence

from fembench.base.errors import shown
from fembench.errors import InputError
from fembench.model.heterogeneity import from_product
from fembench.model.placement import CandidateHost
from fembench.records.hlogp import MessageCost, message_cost
from fembench.records.profile import Profile
from fembench_studies.scheduling.platform import Platform

_HOST = re.compile(
    r"(?P<name>[^\s:,]+):(?P<slots>[0-9]{1,6})(?::(?P<cores>[0-9]{1,6}))?(?::(?P<speed>[^:]+))?"
)


def hosts_of(text: str) -> list[CandidateHost]:
    """The hosts in NAME:SLOTS:CORES:SPEED,…. Raises InputError."""
    hosts: list[CandidateHost] = []
    for word in text.split(","):
        found = _HOST.fullmatch(word.strip())
        speed = _finite(found["speed"] or "1") if found else 0.0
        if not found or speed <= 0:
            raise InputError(
                f"hosts: cannot read '{shown(word)}'; expected NAME:SLOTS:CORES:SPEED, such as a:4:2:0.5"
            )
        if any(host.name == found["name"] for host in hosts):
            raise InputError(
                f"hosts: {found['name']} is given twice; expected one entry per host, with all its slots"
            )
        slots = int(found["slots"])
        hosts.append(CandidateHost(found["name"], slots, int(found["cores"] or slots), 1 / speed))
    return hosts


def _finite(text: str) -> float:
    """The number in a text; 0 if it is not a finite number."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if 1e-9 <= value <= 1e9 else 0.0


def given_hosts(
    hosts: Sequence[CandidateHost], between: tuple[float, float], inside: tuple[float, float], overhead: float
) -> Platform:
    """One processor per slot; if a host has more slots than cores,
    its slots share the cores.

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
    """The ranks of a profile: H from the matrix-vector product, 1 for the
    fastest; measured Os, L and Or.

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
    return Platform(tuple(map(float, H)), message, _numbered(profile.environment.host_of_rank))


def _numbered(names: Sequence[str]) -> tuple[str, ...]:
    """'a' for the only processor of a host, 'a/0', 'a/1' … for several."""
    return tuple(
        name if names.count(name) == 1 else f"{name}/{list(names[:k]).count(name)}"
        for k, name in enumerate(names)
    )
