"""Place parts on hosts: greedy starts, improved by moves and swaps, for a given cost.

The cost is a function of the placement (rank -> host): `iteration_seconds`, or a
simulation. Starts: the largest part first, on the host where it finishes earliest;
hosts filled one after the other; one rank per host in turns.

An iteration in closed form, with HLogP (Mendes 2004): a rank computes, sends to its
neighbours, then receives in order of arrival; overheads occupy its processor. Ranks on
one host share its cores. An iteration ends with two all-reduces by recursive doubling.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.model.collectives import doubling_seconds
from fembench.records.hlogp import MessageCost

REDUCED = 8.0  # bytes of an all-reduce
Messages = Callable[[float, int, int], MessageCost]  # bytes, from host, to host


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


def iteration_seconds(
    parts: Parts, hosts: Sequence[CandidateHost], message: Messages, place: Sequence[int]
) -> float:
    """Seconds of an iteration with rank r on host place[r]."""
    n = parts.n_ranks
    done = [seconds * slower for seconds, slower in zip(parts.compute, shared(hosts, place))]
    arrivals: list[list[tuple[float, float]]] = [[] for _ in range(n)]
    for r in range(n):
        for q, size in zip(parts.neighbours[r], parts.message_bytes[r]):
            cost = message(size, place[r], place[q])
            done[r] += cost.send
            arrivals[q].append((done[r] + cost.latency, cost.receive))
    for r in range(n):
        for moment, overhead in sorted(arrivals[r]):
            done[r] = max(done[r], moment) + overhead
    return max(done) + 2 * allreduce_seconds(message, place)


def shared(hosts: Sequence[CandidateHost], place: Sequence[int]) -> list[float]:
    """[rank] slowdown over a core of its own at H = 1; ranks share their host's cores."""
    count = Counter(place)
    return [hosts[p].slowness * max(1.0, count[p] / hosts[p].cores) for p in place]


def allreduce_seconds(message: Messages, place: Sequence[int]) -> float:
    """Seconds of recursive doubling with 8 bytes."""
    return doubling_seconds(len(place), lambda a, b: message(REDUCED, place[a], place[b]).total)


Place = tuple[int, ...]  # [rank] -> host
Cost = Callable[[Place], float]
MOST_LOOKS = 20_000
JUDGED = 400  # placements that the judge evaluates in the last step


@dataclass(frozen=True)
class Placement:
    """The best placement found."""

    place: Place
    seconds: float  # according to the judge
    start: str  # start from which it was found
    starts: tuple[tuple[str, float], ...]  # (name, seconds) of every start, before improvement


def best_placement(
    parts: Parts,
    hosts: Sequence[CandidateHost],
    cost: Cost,
    judge: Cost | None = None,
) -> Placement:
    """The fastest placement found from greedy starts by moves and swaps.

    A `judge`, which is more accurate and more expensive than `cost` (such as a
    simulation), chooses among the starts before and after improvement, and improves the
    best one further. Raises InputError if the ranks do not fit.
    """
    room = sum(h.slots for h in hosts)
    if parts.n_ranks > room:
        raise InputError(
            f"{plural(parts.n_ranks, 'rank')} on hosts with {plural(room, 'slot')}; "
            "expected at least as many slots"
        )
    decide = judge or cost
    starts = {name: start(parts, hosts) for name, start in STARTS.items()}
    judged = [(decide(place), name, place) for name, place in starts.items()]
    each = MOST_LOOKS // len(starts)
    for name, place in starts.items():
        better = exchanged(place, hosts, cost, each)
        judged.append((decide(better), f"{name}, exchanged", better))
    seconds, name, place = min(judged)
    if judge:
        better = exchanged(place, hosts, judge, JUDGED)
        seconds, name, place = min((seconds, name, place), (judge(better), f"{name}, again", better))
    return Placement(place, seconds, name, tuple((n, decide(p)) for n, p in starts.items()))


def greedy(parts: Parts, hosts: Sequence[CandidateHost]) -> Place:
    """The largest part first, each on the host that then finishes computing first."""
    load = [0.0] * len(hosts)
    free = [h.slots for h in hosts]
    place = [0] * parts.n_ranks
    for r in sorted(range(parts.n_ranks), key=lambda r: -parts.compute[r]):
        work = parts.compute[r]
        options = [p for p in range(len(hosts)) if free[p]]
        taken = [host.slots - left for host, left in zip(hosts, free)]
        ends = {p: _ends(work, hosts[p], load[p], taken[p]) for p in options}
        p = min(options, key=ends.__getitem__)
        load[p] += work
        free[p] -= 1
        place[r] = p
    return tuple(place)


def _ends(work: float, host: CandidateHost, load: float, ranks: int) -> float:
    """The time at which a host finishes if its ranks share its cores."""
    if ranks < host.cores:
        return work * host.slowness
    return (load + work) * host.slowness / host.cores


def filled(parts: Parts, hosts: Sequence[CandidateHost]) -> Place:
    """The fastest hosts filled one after another, so that consecutive ranks share one."""
    order = sorted(range(len(hosts)), key=lambda p: hosts[p].slowness)
    slots = [p for p in order for _ in range(min(hosts[p].slots, hosts[p].cores))]
    slots += [p for p in order for _ in range(hosts[p].slots - min(hosts[p].slots, hosts[p].cores))]
    return tuple(slots[: parts.n_ranks])


def dealt(parts: Parts, hosts: Sequence[CandidateHost]) -> Place:
    """One rank per host in turns, as `mpirun --map-by node` does."""
    free = [h.slots for h in hosts]
    place: list[int] = []
    p = 0
    while len(place) < parts.n_ranks:
        if free[p]:
            place.append(p)
            free[p] -= 1
        p = (p + 1) % len(hosts)
    return tuple(place)


STARTS: dict[str, Callable[[Parts, Sequence[CandidateHost]], Place]] = {
    "greedy": greedy,
    "hosts filled": filled,
    "dealt in turns": dealt,
}


def exchanged(place: Place, hosts: Sequence[CandidateHost], cost: Cost, looks: int) -> Place:
    """The placement improved by moves to free slots and swaps of two ranks: the best
    one of each round, until none helps or `looks` placements have been evaluated."""
    now = cost(place)
    while looks > 0:
        found = []
        for other in islice(_moves(place, hosts), looks):
            found.append((cost(other), other))
            looks -= 1
        if not found or min(found)[0] >= now * (1 - 1e-12):
            break
        now, place = min(found)
    return place


def _moves(place: Place, hosts: Sequence[CandidateHost]):
    used = [place.count(p) for p in range(len(hosts))]
    for r in range(len(place)):
        for p in range(len(hosts)):
            if p != place[r] and used[p] < hosts[p].slots:
                yield (*place[:r], p, *place[r + 1 :])
        for q in range(r + 1, len(place)):
            if place[q] != place[r]:
                swapped = list(place)
                swapped[r], swapped[q] = place[q], place[r]
                yield tuple(swapped)
