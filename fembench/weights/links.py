"""Seconds that each rank communicates per set, from its message sizes and the links between hosts.

C_p = n x sum over neighbours q of [(own seconds per byte) x bytes_pq + wire(p, q, bytes_pq)], n iterations

wire of links       as given by the user: latency + bytes / bandwidth, the worse of the two hosts' links;
                    0 within a host
wire of a network   as measured: L(m) + Or(m) of HLogP (Mendes 2004, Eq. 3.10), also within a host; the
                    sender's overhead Os is part of its own seconds
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fembench.base.errors import InputError
from fembench.records import hlogp
from fembench.records.hlogp import GivenLink
from fembench.records.network import class_of, value_at
from fembench.records.profile import Profile

Wire = Callable[[str, str, int], float]  # (from host, to host, bytes) -> seconds of a message


def parse_link(text: str) -> tuple[str, GivenLink]:
    """('node8' or '' for all hosts, link) of 'node8=50e-6,125e6' or '50e-6,125e6'. Raises InputError."""
    host, _, numbers = text.rpartition("=")
    return host, hlogp.parse_link(numbers)


def wire_of_links(links: Mapping[str, GivenLink]) -> Wire:
    """The wire of given links, one per host; '' is the default. The wire raises InputError without a link."""

    def seconds(here: str, there: str, n_bytes: int) -> float:
        if here == there:
            return 0.0
        ends = (_link(links, here), _link(links, there))
        return max(e.latency for e in ends) + n_bytes / min(e.bandwidth for e in ends)

    return seconds


def wire_of_network(profile: Profile, where: str) -> Wire:
    """The wire of a profile's network. Raises InputError without a network; the wire, for an unknown host."""
    network = profile.network
    if network is None:
        raise InputError(
            f"{where}: the profile has no network; expected a profile of fembench characterize --network"
        )
    index = {host.name: i for i, host in enumerate(profile.environment.hosts)}

    def seconds(here: str, there: str, n_bytes: int) -> float:
        for host in (here, there):
            if host not in index:
                raise InputError(f"{where}: no host {host}; expected one of {', '.join(index)}")
        found = class_of(network, index[here], index[there])
        return max(value_at(found.latency, n_bytes), 0.0) + max(value_at(found.receive, n_bytes), 0.0)

    return seconds


def communication_seconds(
    neighbours: Sequence[Sequence[int]],
    message_bytes: Sequence[Sequence[int]],
    hosts: Sequence[str],
    wire: Wire,
    iterations: int,
    own: npt.ArrayLike = 0.0,
) -> npt.NDArray[np.float64]:
    """(P,) C_p from each rank's neighbours and the bytes of a message to each.

    `own` (P,) or one number: seconds per byte for packing and sending.
    """
    C = np.zeros(len(hosts)) + np.asarray(own, float)
    for p, here in enumerate(hosts):
        C[p] *= iterations * sum(message_bytes[p])
        C[p] += iterations * sum(wire(here, hosts[q], m) for q, m in zip(neighbours[p], message_bytes[p]))
    return C


def _link(links: Mapping[str, GivenLink], host: str) -> GivenLink:
    found = links.get(host) or links.get("")
    if found is None:
        raise InputError(f"no link for host {host}; expected one for this host or for all hosts")
    return found
