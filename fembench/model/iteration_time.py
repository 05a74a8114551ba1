"""Time of one CG iteration for a placement of parts, in closed form with HLogP (Mendes 2004).

A rank computes, sends to its neighbours, then receives in order of arrival; overheads occupy its processor.
Ranks on one host share its cores. An iteration ends with two all-reduces by recursive doubling.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.model.collectives import doubling_seconds
from fembench.model.platform import Messages, Platform

REDUCED = 8.0  # bytes of an all-reduce


@dataclass(frozen=True)
class Parts:
    """The work of each rank in one iteration."""

    compute: tuple[float, ...]  # (P,) seconds on a host of H = 1
    neighbours: tuple[tuple[int, ...], ...]  # [rank] -> ranks
    message_bytes: tuple[tuple[int, ...], ...]  # [rank][neighbour]

    @property
    def n_ranks(self) -> int:
        return len(self.compute)


@dataclass(frozen=True)
class CandidateHost:
    """A host that can take ranks."""

    name: str
    slots: int  # maximum number of ranks
    cores: int  # shared by these ranks
    slowness: float = 1.0


def platform_of(hosts: Sequence[CandidateHost], message: Messages) -> Platform:
    """The hosts as a platform of HLogP. Raises InputError for a host without slots or cores."""
    for host in hosts:
        if host.slots < 1 or host.cores < 1:
            raise InputError(
                f"host {host.name}: {plural(host.slots, 'slot')} on {plural(host.cores, 'core')}: "
                "expected 1 or more"
            )
    return Platform(tuple(h.slowness for h in hosts), message, tuple(h.name for h in hosts))


def iteration_seconds(
    parts: Parts, hosts: Sequence[CandidateHost], platform: Platform, place: Sequence[int]
) -> float:
    """Seconds of an iteration with rank r on host place[r]."""
    n = parts.n_ranks
    done = [seconds * slower for seconds, slower in zip(parts.compute, shared(hosts, place))]
    arrivals: list[list[tuple[float, float]]] = [[] for _ in range(n)]
    for r in range(n):
        for q, size in zip(parts.neighbours[r], parts.message_bytes[r]):
            cost = platform.message(size, place[r], place[q])
            done[r] += cost.send
            arrivals[q].append((done[r] + cost.latency, cost.receive))
    for r in range(n):
        for moment, overhead in sorted(arrivals[r]):
            done[r] = max(done[r], moment) + overhead
    return max(done) + 2 * allreduce_seconds(platform, place)


def shared(hosts: Sequence[CandidateHost], place: Sequence[int]) -> list[float]:
    """[rank] slowdown relative to a core of its own on a host of H = 1; ranks share their host's cores."""
    count = Counter(place)
    return [hosts[p].slowness * max(1.0, count[p] / hosts[p].cores) for p in place]


def allreduce_seconds(platform: Platform, place: Sequence[int]) -> float:
    """Seconds of recursive doubling with 8 bytes."""
    return doubling_seconds(len(place), lambda a, b: platform.message(REDUCED, place[a], place[b]).total)
