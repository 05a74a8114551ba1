"""The hosts of a job with their slots, and the order in which ranks fill them."""

from collections.abc import Iterable
from dataclasses import dataclass

from fembench.launch.hostfile import HostSlots


@dataclass(frozen=True)
class Allocation:
    """The hosts of a job, each once, in the order in which they are filled."""

    source: str  # where it was read: 'Slurm job 7', 'PBS_NODEFILE', 'host file FILE', 'this machine'
    hosts: tuple[HostSlots, ...]
    batch: bool = False  # a batch system gave it
    order: tuple[HostSlots, ...] = ()  # of the ranks, if a host file has one of its own
    crowded: bool = False  # a host file asks for more slots on a host than the batch system gave
    heterogeneous: bool = False  # a Slurm job of several components

    @property
    def slots(self) -> int:
        """Ranks that all hosts take together."""
        return sum(host.slots for host in self.hosts)

    def __str__(self) -> str:
        shown = ", ".join(f"{host.name}:{host.slots}" for host in self.hosts[:8])
        more = f", … ({len(self.hosts)} hosts)" if len(self.hosts) > 8 else ""
        return f"{self.slots} slots, {self.source}: {shown}{more}"


def merged(hosts: Iterable[HostSlots]) -> tuple[HostSlots, ...]:
    """Each host once, where it is named first, with all its slots."""
    found: dict[str, HostSlots] = {}
    for host in hosts:
        known = found.get(host.name, host._replace(slots=0))
        found[host.name] = known._replace(slots=known.slots + host.slots)
    return tuple(found.values())


def filled(hosts: Iterable[HostSlots], ranks: int) -> list[HostSlots]:
    """Hosts with the ranks that they take, one host after another."""
    found: list[HostSlots] = []
    for host in hosts:
        taken = min(host.slots, ranks)
        ranks -= taken
        if taken and found and found[-1].name == host.name:
            found[-1] = host._replace(slots=found[-1].slots + taken)
        elif taken:
            found.append(host._replace(slots=taken))
    return found


def in_turns(hosts: Iterable[HostSlots], ranks: int) -> list[HostSlots]:
    """Hosts in the order of ranks if each host takes the next one in turn."""
    left, found = list(hosts), list[HostSlots]()
    while left and len(found) < ranks:
        found += [host._replace(slots=1) for host in left]
        left = [host._replace(slots=host.slots - 1) for host in left if host.slots > 1]
    return filled(found, ranks)
