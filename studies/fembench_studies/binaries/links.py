"""The network of a predicted run: as stated, or as measured within a host."""

from pathlib import Path
from typing import NamedTuple

from fembench.errors import InputError
from fembench.records.hlogp import message_cost, parse_link
from fembench.records.network import class_of
from fembench.records.profile import load_profile

SMALL, LARGE = 8, 1 << 16  # bytes of the messages that give latency and bandwidth


class Link(NamedTuple):
    """Costs of messages, the same for all pairs of ranks."""

    latency: float  # seconds
    bandwidth: float  # bytes/s
    overhead: float = 1e-6  # seconds, for sender and receiver each
    rendezvous: int | None = None  # bytes from which messages wait for their receiver; None: none do


def link_of(text: str) -> Link:
    """The link in '1e-6,5e9' or in a machine profile, between ranks of its first host. Raises InputError."""
    if not Path(text).is_file():
        return Link(*parse_link(text, overhead=True))
    network = load_profile(text).network
    if network is None or network.pair_class[0][0] < 0:
        raise InputError(f"{text} has no messages within a host; expected characterize --network on 2 ranks")
    pair = class_of(network, 0, 0)
    small, large = (message_cost(pair, m, same_host=True) for m in (SMALL, LARGE))
    bandwidth = (LARGE - SMALL) / max(large.total - small.total, 1e-300)
    return Link(small.latency, bandwidth, (small.send + small.receive) / 2, pair.switch)
