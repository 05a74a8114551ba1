"""HLogP (Mendes 2004, 3.10): the cost of a message.

    T(m, p, q) = Os(m, p) + L(m, p, q) + Or(m, q)

Os and Or occupy the processors of sender and receiver; L occupies none. Any unit of time.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from fembench.base.errors import InputError, shown
from fembench.records.network import CurvePiece, PairClass, cold_at, value_at


class MessageCost(NamedTuple):
    """One message."""

    send: float  # Os
    latency: float  # L
    receive: float  # Or

    @property
    def total(self) -> float:
        return self.send + self.latency + self.receive


class GivenLink(NamedTuple):
    """A network as an option gives it, the same for all pairs of ranks, or of hosts."""

    latency: float  # seconds
    bandwidth: float  # bytes/s
    overhead: float = 1e-6  # seconds, for sender and receiver each


def parse_link(text: str, *, overhead: bool = False) -> GivenLink:
    """The link in '50e-6,125e6'; with `overhead`, '50e-6,125e6,2e-6'. Raises InputError."""
    words = text.split(",")
    try:
        link = GivenLink(*map(float, words))
    except (TypeError, ValueError):
        link = GivenLink(-1, -1)
    if not (
        len(words) <= 2 + overhead
        and 0 <= link.latency < 1e6
        and 0 < link.bandwidth < math.inf
        and 0 <= link.overhead < 1e6
    ):
        form = f"SECONDS,BYTES/S{' or SECONDS,BYTES/S,OVERHEAD' if overhead else ''}"
        raise InputError(f"link '{shown(text)}': expected {form}, times of 0 or more and a bandwidth above 0")
    return link


class Kielmann(NamedTuple):
    """LogP parameters by the method of Kielmann et al. (version I of Mendes 2004)."""

    latency: float
    gap: float  # g(m)

    @property
    def total(self) -> float:
        """Seconds one way."""
        return self.latency + self.gap


class Computed(NamedTuple):
    """Computing before a message, which leaves code, buffers and translations cold."""

    sender: float = 0.0  # seconds since its previous send
    receiver: float = 0.0  # seconds since its previous receive
    swept: bool = True  # it swept through memory, as CG does; False: its data stayed in cache


NOTHING = Computed()  # right after another message, as in a ping-pong


def message_cost(
    functions: PairClass, m: float, *, same_host: bool = False, computed: Computed = NOTHING
) -> MessageCost:
    """The cost of a message of m bytes after computing.

    A negative latency within a host means that Os and Or overlap, impossible on one
    processor: then L = 0, Os = Or = RTT / 4 (Mendes 2004, 5.3.1).
    """
    warm = (value_at(f, m) for f in (functions.send, functions.latency, functions.receive))
    send, latency, _ = cold_at(functions, m, computed.sender, computed.swept)
    *_, receive = cold_at(functions, m, computed.receiver, computed.swept)
    cost = MessageCost(*(a + b for a, b in zip(warm, (send, latency, receive))))
    if same_host and cost.latency < 0:
        return MessageCost(cost.total / 2, 0.0, cost.total / 2)
    return cost


def ping_pong_latency(
    rtt: float, os_measure: float, or_mirror: float, os_mirror: float, or_measure: float
) -> float:
    """L from local clocks alone: half of the round trip minus its four overheads (4.3.4)."""
    return (rtt - os_measure - or_mirror - os_mirror - or_measure) / 2


def kielmann(rtt_0: float, gap_0: float, rtt_m: float) -> Kielmann:
    """L and g(m) from round trips of 0 and m bytes and the gap of empty messages (4.3.2)."""
    return Kielmann(latency=(rtt_0 - 2 * gap_0) / 2, gap=rtt_m - rtt_0 + gap_0)


def scaled(pieces: Sequence[CurvePiece], factor: float) -> tuple[CurvePiece, ...]:
    """The function times `factor`."""
    return tuple(
        CurvePiece(first=p.first, coefficients=tuple(factor * c for c in p.coefficients)) for p in pieces
    )
