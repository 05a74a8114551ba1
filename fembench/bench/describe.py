"""Provenance of a run, gathered from its ranks (rule E7); devices; offsets between clocks.

The device of each rank is opened before the clock starts, and described in the record.

Offsets between the clocks of hosts are measured by ping-pong.
Rank 0 sends to the first rank of every other host, which answers with the reading of
its clock. The reading was taken between sending and receiving, so the offset is known
to half a round trip; the shortest of many counts (D. L. Mills, Internet time
synchronization, IEEE Trans. Commun. 39 (1991) 1482-1493). Offsets are measured before
and after the sets, and interpolated in between.

Readings are ticks since the origin of the rank's own tracer. Ticks of different hosts
are never subtracted: they become seconds first, each at its own rate.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct, structs

from fembench.base.errors import InputError
from fembench.base.plugins import brought
from fembench.bench.prepare import Prepared
from fembench.host.build import this_build
from fembench.host.host import Taken, affinity, first_cpus, numa_node, physical_cores
from fembench.host.others import OthersShare
from fembench.host.provenance import blas_threads, host_key, host_names, machine_key, variables, versions
from fembench.kernels.backend import kernels
from fembench.launch.job import Job
from fembench.methods.lookup import CPU, load, storage_of
from fembench.ranks.comm import Comm, library, together
from fembench.records.case import Case
from fembench.records.record import (
    NOT_RECORDED,
    ClockCertificate,
    ClockOffset,
    DeviceFacts,
    Environment,
    HostFacts,
    bytes_on_device,
)
from fembench.solve.operators import RankDevice
from fembench.synthetic.speeds import slowness_text
from fembench.timing.tracer import TracerLike

# on a device: of a full 3x3 block and its column; of a cell's node, element by element
BLOCK_BYTES, FORCE_BYTES = 76, 32
FINISHED = "phases of device ranks end when the device has finished their work; stamps are the host's"


def device_of(comm: Comm, kinds: Sequence[str]) -> RankDevice | None:
    """This rank's device with compiled kernels; None: it computes on cores. Collective.

    kinds: [rank] what it computes on. Ranks of a host take its devices in turn. Raises
    InputError if one has none.
    """
    if set(kinds) == {CPU}:
        return None
    hosts = host_names(comm)
    rank = comm.rank
    kind = kinds[comm.rank]
    before = list(zip(hosts[:rank], kinds[:rank])).count((hosts[rank], kind))
    return together(comm, lambda: None if kind == CPU else _opened(kind, before))


def _opened(kind: str, number: int) -> RankDevice:
    """The room of devices and its libraries are imported on these ranks only."""
    return load("fembench.device.find:open_device")(kind, number)


def check_memory(comm: Comm, case: Case, prepared: Prepared) -> None:
    """Collective; raises InputError if the device of a rank cannot hold its part."""
    if set(case.devices) == {CPU}:
        return
    everyone = comm.allgather((host_key(), described(prepared.device)))
    facts = device_facts(everyone)[comm.rank]
    together(comm, lambda: _check_part(prepared, comm.rank, case.method.storage, facts))


def _check_part(prepared: Prepared, rank: int, storage: str, facts: DeviceFacts) -> None:
    if not facts.name:
        return
    parts = prepared.partition
    npc = prepared.sub.cells.shape[1]
    by_cells = storage_of(storage).unit == "cells"
    matrix = (FORCE_BYTES * npc + 16) * parts.cells[rank] if by_cells else BLOCK_BYTES * parts.blocks[rank]
    needed = bytes_on_device(matrix, parts.dofs[rank])
    if needed > facts.limit:
        raise InputError(facts.refusal(rank, parts.cells[rank], needed))


def described(device: RankDevice | None) -> DeviceFacts:
    """A rank's device as it knows it: without its sharers."""
    return DeviceFacts() if device is None else DeviceFacts(*device.said)


def device_facts(ranks: Sequence[tuple[Hashable, DeviceFacts]]) -> tuple[DeviceFacts, ...]:
    """[rank] what it computes on, from its host and device; () if no rank has a device."""
    if not any(device.name for _, device in ranks):
        return ()
    sharers = Counter(ranks)
    return tuple(structs.replace(one[1], ranks=sharers[one] if one[1].name else 1) for one in ranks)


def stamped(clock: ClockCertificate, devices: tuple[DeviceFacts, ...]) -> ClockCertificate:
    """The certificate, with what it says of the phases of device ranks."""
    return structs.replace(clock, devices=FINISHED) if devices else clock


def environment_of(
    comm: Comm,
    job: Job,
    before: HostFacts,
    taken: Callable[[int], Taken],
    others: OthersShare | None = None,
    device: RankDevice | None = None,
) -> Environment | None:
    """The environment on rank 0, else None. `before`: of the run. Collective."""
    return describe(
        comm,
        before,
        taken,
        others,
        launcher=job.launcher,
        command=job.command,
        synthetic=slowness_text(job.case.synthetic, job.synthetic),
        dilate=job.case.synthetic.dilate,
        hosts_asked=job.hosts_asked,
        crowded=job.crowded,
        device=device,
        threads=job.case.placement.threads,
    )


class RankFacts(NamedTuple):
    """Facts that one rank reports about itself."""

    host: HostFacts
    affinity: tuple[int, ...]
    cores: frozenset[str]  # that it may run on
    numa: int  # node of all of them; -1: several, or unknown
    threads: int  # of its BLAS
    device: DeviceFacts


def describe(
    comm: Comm,
    before: HostFacts,
    taken: Callable[[int], Taken],
    others: OthersShare | None = None,
    *,
    launcher: str,
    command: str,
    synthetic: str,
    dilate: float,
    hosts_asked: str = NOT_RECORDED,
    crowded: bool = False,
    device: RankDevice | None = None,
    threads: int = 1,
) -> Environment | None:
    """Like environment_of, for any kind of job. Collective."""
    used = others._asdict() if others else {}
    names = host_names(comm)
    name = names[comm.rank]
    held = taken(names.count(name))._asdict()
    machines = comm.allgather(machine_key())
    machine = machines.index(machines[comm.rank])  # its first rank
    here = msgspec.structs.replace(before, name=name, machine=machine, **held, **used)
    cpus = affinity()
    own = physical_cores(cpus), numa_node(cpus), blas_threads(), described(device)
    rows = comm.gather(RankFacts(here, cpus, *own))
    if rows is None:
        return None
    hosts: dict[str, HostFacts] = {}
    ranks: dict[str, list[RankFacts]] = {}
    for row in rows:
        known = hosts.setdefault(row.host.name, row.host)
        worst = max(known, row.host, key=lambda h: h.steal_percent + h.throttled_percent)
        hosts[known.name] = msgspec.structs.replace(worst, energy=known.energy)  # of its first rank
        ranks.setdefault(known.name, []).append(row)
    order = list(hosts)
    return Environment(
        hosts=tuple(hosts.values()),
        rank_host=tuple(order.index(row.host.name) for row in rows),
        affinity=tuple(row.affinity for row in rows),
        oversubscribed=any(_crowded(ranks[name], dilate / threads) for name in order),
        mpi=library(),
        launcher=launcher,
        command=command,
        versions=versions(),
        **this_build()._asdict(),
        kernels=kernels.NAME,
        blas_threads=max(row.threads for row in rows),
        variables=variables(),
        synthetic=synthetic,
        hosts_asked=hosts_asked,
        cores=tuple(first_cpus(row.cores) for row in rows),
        numa=tuple(row.numa for row in rows),
        crowded=crowded,
        devices=device_facts([(row.host.name, row.device) for row in rows]),
        brought=brought(),
        threads=threads,
    )


def _crowded(ranks: Sequence[RankFacts], dilate: float) -> bool:
    """Whether ranks share the cores that they may run on, whatever a quota grants."""
    bound = frozenset().union(*(row.cores for row in ranks))
    return len(ranks) > len(bound) * dilate


ROUNDS = 200
_TAG = 11


class Sight(Struct, frozen=True):
    """The shortest of many round trips to one rank."""

    rank: int
    here: float  # ticks of rank 0's clock in its middle
    trip: int  # ticks of rank 0's clock that it took
    there: int  # ticks of the other clock


class Offset(Struct, frozen=True):
    """The offset of a host's clock, seconds; by default zero, as on rank 0's host."""

    host: int
    times: tuple[float, float] = (0.0, 1.0)  # by its own clock, of the two estimates
    ahead: tuple[float, float] = (0.0, 0.0)
    uncertainty: float = 0.0

    def common(self, moment: float) -> float:
        """A time on this host's clock, converted to that of rank 0's host."""
        return moment - float(np.interp(moment, self.times, self.ahead))

    def in_record(self) -> ClockOffset:
        drift = (self.ahead[1] - self.ahead[0]) / (self.times[1] - self.times[0])
        return ClockOffset(
            host=self.host,
            before=self.ahead[0],
            after=self.ahead[1],
            uncertainty=self.uncertainty,
            drift=drift,
        )


def sights(comm: Comm, tracer: TracerLike, leaders: Sequence[int], rounds: int = ROUNDS) -> list[Sight]:
    """One per leader but rank 0, on rank 0; empty elsewhere. Collective over leaders."""
    if comm.rank == 0:
        return [_see(comm, tracer, rank, rounds) for rank in leaders if rank]
    if comm.rank in leaders:
        _answer(comm, tracer, rounds)
    return []


def _see(comm: Comm, tracer: TracerLike, rank: int, rounds: int) -> Sight:
    now = tracer.now
    answer = np.zeros(1, np.int64)
    trips = []
    for _ in range(rounds):
        begin = now()
        comm.Send(answer, rank, _TAG)
        comm.Recv(answer, rank, _TAG)
        trips.append((now() - begin, begin, int(answer[0])))
    trip, begin, there = min(trips)
    return Sight(rank, begin - tracer.origin + trip / 2, trip, there)


def _answer(comm: Comm, tracer: TracerLike, rounds: int) -> None:
    stamp = np.zeros(1, np.int64)
    for _ in range(rounds):
        comm.Recv(stamp, 0, _TAG)
        stamp[0] = tracer.now() - tracer.origin
        comm.Send(stamp, 0, _TAG)


def offset_of(before: Sight, after: Sight, rate: float, other_rate: float, host: int) -> Offset:
    """The offset from two estimates, at `rate` and `other_rate` ticks per second."""
    both = (before, after)
    return Offset(
        host=host,
        times=(before.there / other_rate, after.there / other_rate),
        ahead=(
            before.there / other_rate - before.here / rate,
            after.there / other_rate - after.here / rate,
        ),
        uncertainty=max(s.trip for s in both) / 2 / rate,
    )
