"""Provenance of a run, gathered from its ranks (rule E7); the device of each rank.

A device is opened before the clock starts, and described in the record.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from msgspec import structs

from fembench.base.plugins import brought
from fembench.host.build import this_build
from fembench.host.host import Taken, affinity, first_cpus, numa_node, physical_cores
from fembench.host.others import OthersShare
from fembench.host.provenance import blas_threads, variables, versions
from fembench.host.where import host_names, machine_key
from fembench.kernels.backend import kernels
from fembench.launch.job import Job
from fembench.methods.lookup import CPU, load
from fembench.ranks.comm import Comm, library, together
from fembench.records.case import Case
from fembench.records.record import NOT_RECORDED, ClockCertificate, DeviceFacts, Environment, HostFacts
from fembench.solve.operators import RankDevice
from fembench.synthetic.speeds import slowness_text

FINISHED = "phases of device ranks end when the device has finished their work; stamps are the host's"


def device_of(comm: Comm, case: Case) -> RankDevice | None:
    """This rank's device with compiled kernels; None: it computes on cores. Collective.

    Ranks of a host take its devices in turn. Raises InputError if one has none.
    """
    kinds = case.devices
    if set(kinds) == {CPU}:
        return None
    hosts, rank, kind = host_names(comm), comm.rank, kinds[comm.rank]
    before = list(zip(hosts[:rank], kinds[:rank])).count((hosts[rank], kind))
    return together(comm, lambda: None if kind == CPU else _opened(kind, before))


def _opened(kind: str, number: int) -> RankDevice:
    """The room of devices and its libraries are imported on these ranks only."""
    return load("fembench.device.find:open_device")(kind, number)


def devices_in_record(comm: Comm, device: RankDevice | None) -> tuple[DeviceFacts, ...]:
    """[rank] what it computes on; () if no rank has a device. Collective."""
    said = None if device is None else device.said
    found = comm.allgather(None if said is None else tuple(said))
    if not any(found):
        return ()
    return tuple(DeviceFacts(*facts) if facts else DeviceFacts() for facts in found)


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
    devices = devices_in_record(comm, device)
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
        devices=devices,
    )


class RankFacts(NamedTuple):
    """Facts that one rank reports about itself."""

    host: HostFacts
    affinity: tuple[int, ...]
    cores: frozenset[str]  # that it may run on
    numa: int  # node of all of them; -1: several, or unknown
    threads: int  # of its BLAS


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
    devices: tuple[DeviceFacts, ...] = (),
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
    rows = comm.gather(RankFacts(here, cpus, physical_cores(cpus), numa_node(cpus), blas_threads()))
    if rows is None:
        return None
    hosts: dict[str, HostFacts] = {}
    ranks: dict[str, list[RankFacts]] = {}
    for row in rows:
        known = hosts.setdefault(row.host.name, row.host)
        hosts[known.name] = max(known, row.host, key=lambda h: h.steal_percent + h.throttled_percent)
        ranks.setdefault(known.name, []).append(row)
    order = list(hosts)
    build = this_build()
    return Environment(
        hosts=tuple(hosts.values()),
        rank_host=tuple(order.index(row.host.name) for row in rows),
        affinity=tuple(row.affinity for row in rows),
        oversubscribed=any(_crowded(ranks[name], dilate) for name in order),
        mpi=library(),
        launcher=launcher,
        command=command,
        versions=versions(),
        commit=build.commit,
        dirty=build.dirty,
        sources=build.sources,
        kernels=kernels.NAME,
        blas_threads=max(row.threads for row in rows),
        variables=variables(),
        synthetic=synthetic,
        hosts_asked=hosts_asked,
        cores=tuple(first_cpus(row.cores) for row in rows),
        numa=tuple(row.numa for row in rows),
        crowded=crowded,
        devices=devices,
        brought=brought(),
    )


def _crowded(ranks: Sequence[RankFacts], dilate: float) -> bool:
    """Whether ranks share the cores that they may run on, whatever a quota grants."""
    bound = frozenset().union(*(row.cores for row in ranks))
    return len(ranks) > len(bound) * dilate
