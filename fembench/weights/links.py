"""Seconds that each rank communicates in one set, from the sizes of its interface and its links.

C_p = (own seconds per byte) x bytes_p + n x sum over neighbours q on other hosts of
      (latency + bytes_pq / bandwidth), the worse of the two hosts' links, n iterations
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.base.errors import InputError


class Link(NamedTuple):
    """How a host is joined to the others."""

    latency: float  # seconds a message
    bandwidth: float  # bytes a second


def parse_link(text: str) -> tuple[str, Link]:
    """('node8' or '' for all hosts, link) of 'node8=50e-6,125e6' or '50e-6,125e6'. Raises InputError."""
    host, _, numbers = text.rpartition("=")
    try:
        latency, bandwidth = (float(word) for word in numbers.split(","))
    except ValueError:
        raise InputError(f"link '{text}'; expected [HOST=]SECONDS,BYTES-PER-SECOND") from None
    if not (0 <= latency < np.inf and 0 < bandwidth < np.inf):
        raise InputError(f"link '{text}'; expected a latency >= 0 and a bandwidth > 0")
    return host, Link(latency, bandwidth)


def communication_seconds(
    neighbours: Sequence[Sequence[int]],
    message_bytes: Sequence[Sequence[int]],
    hosts: Sequence[str],
    links: Mapping[str, Link],
    iterations: int,
    own: npt.ArrayLike = 0.0,
) -> npt.NDArray[np.float64]:
    """(P,) C_p from each rank's neighbours and the bytes of a message to each.

    `own` (P,) seconds a byte for packing and sending; `links` has a link for '' or for every host.
    """
    C = np.zeros(len(hosts)) + np.asarray(own, float)
    for p, here in enumerate(hosts):
        C[p] *= iterations * sum(message_bytes[p])
        for q, n_bytes in zip(neighbours[p], message_bytes[p]):
            if here != hosts[q]:
                ends = (_link(links, here), _link(links, hosts[q]))
                latency, bandwidth = max(e.latency for e in ends), min(e.bandwidth for e in ends)
                C[p] += iterations * (latency + n_bytes / bandwidth)
    return C


def _link(links: Mapping[str, Link], host: str) -> Link:
    found = links.get(host) or links.get("")
    if found is None:
        raise InputError(f"no link for host {host}; expected one for it or for all")
    return found
