"""Hosts and messages in HLogP: send overhead, latency, receive
overhead (Mendes 2004, 3.10)."""

from dataclasses import dataclass

from fembench.errors import InputError
from fembench.model.placement import Messages


@dataclass(frozen=True)
class Platform:
    """Hosts 0 to P-1, and the cost of messages between them."""

    slowness: tuple[float, ...]  # H: seconds for work that takes one second on a host of H = 1
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
        """Seconds of a message between two different hosts, mean over all pairs."""
        n = self.n_hosts
        each = [self.message(size, i, j).total for i in range(n) for j in range(n) if i != j]
        return sum(each) / len(each) if each else self.message(size, 0, 0).total
