"""The ranks of `fembench characterize --network`: they measure one at a time.

All ranks process the same list of measurements, with a barrier before each. Those not
involved sleep until the next barrier, so that only the measuring pair uses processor
and network.
"""

import gc
import itertools
import math
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import msgspec

from fembench.characterize.cold import LONGEST, measure_cold, overlap_left, polling_factor
from fembench.characterize.cold import SIZES as COLD_SIZES
from fembench.characterize.exchange import (
    Pairs,
    allreduce_time,
    counts_of,
    measure_exchange,
    message_seconds,
    pairs_at_once,
)
from fembench.characterize.jobs import NetworkJob
from fembench.characterize.load_now import kernel_times, load_of
from fembench.characterize.pingpong import SIZES as TRAIN_SIZES
from fembench.characterize.pingpong import PingPongEffort, measure_pair, measure_trains
from fembench.host.host import affinity, named_processor, numa_node, taken_meter
from fembench.host.others import others_meter
from fembench.host.provenance import host_names
from fembench.launch.job import RankProgram, Tell
from fembench.ranks.comm import Comm, together
from fembench.records.network import (
    AllReduceTime,
    Contention,
    Exchange,
    HostTaken,
    KernelTime,
    Network,
    NetworkFound,
    PairSamples,
    RankLoad,
    Trains,
    apart,
)
from fembench.records.sites import Classes, grouped_as, guessed, kind_of, sites_of, switch_of, with_nodes
from fembench.synthetic.slowness import slowness_of
from fembench.synthetic.speeds import parse_speeds

SIZES = tuple(8 << k for k in range(20))  # 8 B to 4 MiB
QUICK_SIZES = SIZES[:18]  # to 1 MiB
FULL = PingPongEffort(seconds=4.0, visits=30, longest=0.5)
QUICK = PingPongEffort(seconds=1.2, visits=10, longest=0.1)
LOOK = 4e-3  # seconds between two tests of the barrier by a rank that is not involved
MEETING = (65536, 1 << 20)  # bytes of messages that several pairs send at once
SUMS = (8, 65536)  # bytes of all-reduces
LARGE = 1 << 20  # bytes: above any switch
COLD_VISITS = (12, 6)  # in full, with --quick


def sizes_of(job: NetworkJob) -> tuple[int, ...]:
    """Bytes of the messages."""
    return job.settings.sizes or (QUICK_SIZES if job.quick else SIZES)


def effort_of(job: NetworkJob) -> PingPongEffort:
    """The effort per pair; requested sizes are measured whatever time they take."""
    usual = QUICK if job.quick else FULL
    longest = math.inf if job.settings.sizes else usual.longest
    if job.settings.repetitions:
        return PingPongEffort(seconds=0.0, visits=job.settings.repetitions, longest=longest)
    return replace(usual, longest=longest)


def cold_sizes(samples: Sequence[PairSamples]) -> list[int]:
    """Bytes of the messages to measure after computing."""
    quick = [s.m for s in samples if statistics.median(s.rtt) / 2 <= LONGEST]
    return [m for m in COLD_SIZES if min(quick, default=math.inf) <= m <= max(quick, default=0)]


class Mine(msgspec.Struct):
    """The results of one rank."""

    samples: list[PairSamples] = []
    cold: list[PairSamples] = []
    trains: list[Trains] = []
    exchanges: list[Exchange] = []
    allreduce: list[AllReduceTime] = []
    contention: list[Contention] = []
    left: float | None = None
    polling: float | None = None
    kernels: list[KernelTime] = []
    load: RankLoad | None = None


def measure_network(comm: Comm, job: NetworkJob, tell: Tell) -> NetworkFound | None:
    """The results on rank 0, None elsewhere; rank 0 calls `tell`. Collective."""
    begin = time.perf_counter()
    speeds = together(comm, lambda: parse_speeds(job.emulate, comm.size))
    names = host_names(comm)
    hosts = tuple(dict.fromkeys(names))
    placed = tuple(hosts.index(name) for name in names)
    sites = together(comm, lambda: sites_of(hosts, job.sites))
    kind = kind_of(named_processor(), os.cpu_count() or 1)
    of_ranks = comm.allgather(kind)
    switches = comm.allgather(switch_of(names[comm.rank], os.environ))
    numa = comm.allgather(numa_node(affinity()))
    first = [placed.index(host) for host in range(len(hosts))]
    kinds = [of_ranks[rank] for rank in first]
    how, alike = grouped_as(job.pairs, hosts, sites, kinds, [switches[rank] for rank in first])
    classes, across = with_nodes(alike, placed, numa)
    taken, others = taken_meter(), others_meter(comm)
    gc.collect()
    gc.disable()  # there is little garbage, and a collection would disturb a measurement
    measuring = Measuring(comm, job, placed, tell if comm.rank == 0 else lambda text: None)
    pairs = rank_pairs(classes, placed, numa, across)
    measuring.messages([(name, pair) for name, pair in zip(classes.names, pairs) if pair])
    measuring.crowds()
    measuring.progress([pair for pair in reversed(pairs[: len(alike.names)]) if pair])
    measuring.kernels(speeds)
    gc.enable()
    used = others()
    lost = taken(names.count(names[comm.rank]))
    here = HostTaken(**used._asdict(), steal_percent=lost.steal_percent)
    everyone = comm.gather(measuring.found)
    disturbed = comm.gather(here) or []
    if everyone is None:
        return None
    network = Network(
        send_mode=job.settings.modes[0],
        pairs=how,
        sites=sites,
        classes=(),
        class_names=classes.names,
        pair_class=classes.pair_class,
        allreduce=tuple(a for one in everyone for a in one.allreduce),
        contention=tuple(c for one in everyone for c in one.contention),
        polling=next((one.polling for one in everyone if one.polling is not None), None),
        overlap_left=next((one.left for one in everyone if one.left is not None), None),
        kernels=tuple(k for one in everyone for k in one.kernels),
        loads=tuple(one.load for one in everyone if one.load),
        samples=tuple(s for one in everyone for s in one.samples),
        cold=tuple(s for one in everyone for s in one.cold),
        trains=tuple(t for one in everyone for t in one.trains),
        exchanges=tuple(e for one in everyone for e in one.exchanges),
        notes=(*_absent(classes, pairs), *guessed(hosts, kinds)),
        seconds=time.perf_counter() - begin,
        settings=msgspec.structs.replace(job.settings, sizes=sizes_of(job)),
        taken=taken_by_host(placed, disturbed),
        numa=tuple(numa),
        across=across if max(across) >= 0 else (),
    )
    return NetworkFound(hosts=hosts, rank_host=placed, network=network)


def _absent(classes: Classes, pairs: Sequence[object]) -> list[str]:
    """A note on each class without a pair of ranks."""
    absent = (name for name, pair in zip(classes.names, pairs) if pair is None)
    return [f"{name}: not measured, no host has two ranks" for name in absent]


def taken_by_host(placed: Sequence[int], taken: Sequence[HostTaken]) -> tuple[HostTaken, ...]:
    """[host] the most that was taken from one of its ranks; `taken` [rank]."""
    ranks = range(len(placed))
    return tuple(
        max((taken[r] for r in ranks if placed[r] == host), key=lambda one: one.steal_percent)
        for host in sorted(set(placed))
    )


def rank_pairs(
    classes: Classes, placed: Sequence[int], numa: Sequence[int] = (), across: Sequence[int] = ()
) -> list[tuple[int, int] | None]:
    """[class] the two ranks that measure it; None inside a host without two ranks.

    On a host, ranks of one NUMA node are preferred but for the class across nodes.
    """
    ranks: dict[int, list[int]] = {}
    for rank, host in enumerate(placed):
        ranks.setdefault(host, []).append(rank)
    alone: dict[int, tuple[int, int]] = {}  # of hosts without two ranks on one node
    inside: dict[int, tuple[int, int]] = {}
    for host, members in ranks.items():
        pairs = list(itertools.combinations(members, 2))
        near = [pair for pair in pairs if not numa or numa[pair[0]] == numa[pair[1]]]
        far = [pair for pair in pairs if apart(numa, *pair)]
        if near:
            inside.setdefault(classes.pair_class[host][host], near[0])
        elif pairs:
            alone.setdefault(classes.pair_class[host][host], pairs[0])
        if far:
            inside.setdefault(across[host], far[0])
    inside = alone | inside
    return [inside.get(k) if a == b else (ranks[a][0], ranks[b][0]) for k, (a, b) in enumerate(classes.pairs)]


class Measuring:
    """All measurements; methods are collective, and `found` has the results of this rank."""

    def __init__(self, comm: Comm, job: NetworkJob, placed: Sequence[int], tell: Tell) -> None:
        self._comm = comm
        self._job = job
        self._placed = placed
        self._tell = tell
        self.found = Mine()

    def _needed(self, ranks: Sequence[int]) -> bool:
        """Wait at a barrier; return whether this rank takes part in the next measurement."""
        request = self._comm.Ibarrier()
        while not request.Test():
            time.sleep(LOOK)
        return self._comm.rank in ranks

    def messages(self, pairs: Sequence[tuple[str, tuple[int, int]]]) -> None:
        """Ping-pongs, trains and exchanges, pair by pair."""
        settings = self._job.settings
        effort = effort_of(self._job)
        sizes = sizes_of(self._job)
        for number, (name, (a, b)) in enumerate(pairs):
            where = f"messages, {name} ({number + 1} of {len(pairs)}), ranks {a} and {b}"
            largest = max(sizes)
            for mode in settings.modes if "II" in settings.methods else ():
                self._tell(f"{where}: round trips, {mode}")
                if self._needed((a, b)):
                    one = measure_pair(self._comm, a, b, sizes, effort, mode)
                    largest = one[-1].m if one else 0
                    self.found.samples += one
                    visits = COLD_VISITS[self._job.quick]
                    self.found.cold += measure_cold(self._comm, a, b, cold_sizes(one), visits, mode)
            if "I" in settings.methods:
                self._tell(f"{where}: trains")
                if self._needed((a, b)):
                    asked = (0, *settings.sizes) if settings.sizes else TRAIN_SIZES
                    repeats = settings.repetitions or (3 if self._job.quick else 7)
                    trains = [m for m in asked if m <= largest]
                    self.found.trains += measure_trains(self._comm, a, b, trains, repeats, effort.longest)
            if "II" in settings.methods:
                self._tell(f"{where}: both ways at once")
                if self._needed((a, b)):
                    self.found.exchanges += measure_exchange(self._comm, a, b, largest, effort.visits)

    def crowds(self) -> None:
        """All-reduces of 2, 4, … and all ranks; messages of several pairs at once."""
        comm = self._comm
        counts = [1 << k for k in range(1, comm.size.bit_length()) if 1 << k < comm.size]
        for count in [*counts, comm.size]:
            self._tell(f"all-reduce of {count} ranks")
            part = cast(Comm, comm.Split(comm.rank < count, comm.rank))
            if self._needed(range(count)):
                times = [allreduce_time(part, m, 10 if self._job.quick else 30) for m in SUMS]
                self.found.allreduce += times if comm.rank == 0 else []
            part.Free()
        for where, pairs in pairs_at_once(self._placed):
            self._tell(f"messages of {len(pairs)} pairs at once, {where}")
            for m in MEETING:
                self._contention(where, pairs, m)

    def _contention(self, where: str, pairs: Pairs, m: int) -> None:
        alone = self._at_once(pairs[:1], m)
        for count in counts_of(pairs):
            factor = self._at_once(pairs[:count], m) / alone
            if self._comm.rank == 0:
                one = Contention(pairs=count, m=m, factor=factor, where=where)  # type: ignore[arg-type]
                self.found.contention.append(one)

    def _at_once(self, pairs: Pairs, m: int) -> float:
        """Median seconds per message while these pairs communicate."""
        needed = self._needed([rank for pair in pairs for rank in pair])
        mine = message_seconds(self._comm, pairs, m, 10 if self._job.quick else 30) if needed else []
        self._needed(())
        return statistics.median(t for times in self._comm.allgather(mine) for t in times)

    def progress(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Overlap of messages, and slowdown by a waiting rank on the same core."""
        self._tell("overlap of computing and messages; waiting ranks")
        if self._needed(pairs[0]):
            self.found.left = overlap_left(self._comm, *pairs[0], LARGE)
        inside = next((p for p in pairs if self._placed[p[0]] == self._placed[p[1]]), None)
        if inside is not None and self._needed(inside):
            self.found.polling = polling_factor(self._comm, *inside)
        self._needed(())

    def kernels(self, speeds: Sequence[float]) -> None:
        """The kernels that measure H, on all ranks at once."""
        self._tell("kernels that measure H")
        ranks = self._placed.count(self._placed[self._comm.rank])
        crowded = ranks > 1 and self._job.dilate > 1
        slowness = slowness_of(self._comm.rank, speeds, self._job.dilate, crowded=crowded)
        self.found.load = load_of(self._comm.rank)
        self._comm.Barrier()
        self.found.kernels = kernel_times(self._comm.rank, slowness, 5 if self._job.quick else 15)
        self._needed(())


PROGRAM = RankProgram(NetworkJob, lambda job: job.ranks, measure_network)
