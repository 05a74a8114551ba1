"""Seconds that each rank communicates per set, from message sizes and a network.

C_p = n x sum over neighbours q of [(own seconds per byte) x bytes_pq + wire(p,
q, bytes_pq)], n iterations

wire: L(m) + Or(m) of HLogP (Mendes 2004, Eq. 3.10), also within a host; the sender's
overhead Os is part of its own seconds.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.records.network import class_of, value_at
from fembench.records.profile import Profile

Wire = Callable[[str, str, int], float]  # (from host, to host, bytes) -> seconds of a message


def wire_of_network(profile: Profile, where: str) -> Wire:
    """The wire of a profile's network. Raises InputError without one or for unknown hosts."""
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
) -> F64:
    """(P,) C_p from each rank's neighbours and the bytes of a message to each.

    `own` (P,) or one number: seconds per byte for packing and sending.
    """
    C = np.zeros(len(hosts)) + np.asarray(own, float)
    for p, here in enumerate(hosts):
        C[p] *= iterations * sum(message_bytes[p])
        C[p] += iterations * sum(wire(here, hosts[q], m) for q, m in zip(neighbours[p], message_bytes[p]))
    return C
