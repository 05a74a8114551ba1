"""Hosts and messages under HLogP: send overhead, latency, receive overhead (Mendes 2004, 3.10)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from fembench.base.errors import InputError


class MessageTime(NamedTuple):
    """Seconds of one message; overheads occupy a processor, the latency does not."""

    send: float
    latency: float  # may be negative where the overheads overlap; the sum is what counts
    receive: float

    @property
    def total(self) -> float:
        return self.send + self.latency + self.receive


Messages = Callable[[float, int, int], MessageTime]  # bytes, from host, to host


@dataclass(frozen=True)
class Platform:
    """Hosts 0 to P-1."""

    slowness: tuple[float, ...]  # H: seconds for the work of one second on a host of 1
    message: Messages
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.slowness or min(self.slowness) <= 0:
            raise InputError(f"slowness {self.slowness}: expected numbers above 0")

    @property
    def n_hosts(self) -> int:
        return len(self.slowness)

    @property
    def mean_slowness(self) -> float:
        return sum(self.slowness) / self.n_hosts

    def mean_message(self, size: float) -> float:
        """Seconds between two different hosts, the mean of all pairs."""
        n = self.n_hosts
        each = [self.message(size, i, j).total for i in range(n) for j in range(n) if i != j]
        return sum(each) / len(each) if each else self.message(size, 0, 0).total
