"""Provenance of a run, gathered from its ranks (VALIDITY E7)."""

from collections import Counter
from collections.abc import Callable

import msgspec

from fembench.bench.job import Job
from fembench.dist.comm import Comm, library
from fembench.kernels.backend import kernels
from fembench.machine.build import this_build
from fembench.machine.emulate import label
from fembench.machine.host import Taken, affinity
from fembench.machine.provenance import blas_threads, variables, versions
from fembench.records.record import Environment, HostFacts


def environment_of(comm: Comm, job: Job, before: HostFacts, taken: Callable[[], Taken]) -> Environment | None:
    """The environment on rank 0, None elsewhere; `before` is the host before the run. Collective."""
    slowed = label(job.case.emulate, job.case.dilate)
    if job.case.emulate_change:
        slowed = f"{slowed}, changing {job.case.emulate_change}".removeprefix(", ")
    return describe(
        comm,
        before,
        taken,
        launcher=job.launcher,
        command=job.command,
        synthetic=", ".join(filter(None, [job.synthetic, slowed])),
        dilate=job.case.dilate,
    )


def describe(
    comm: Comm,
    before: HostFacts,
    taken: Callable[[], Taken],
    *,
    launcher: str,
    command: str,
    synthetic: str,
    dilate: float,
) -> Environment | None:
    """As environment_of, for whatever the ranks did. Collective."""
    here = msgspec.structs.replace(before, **taken()._asdict())
    rows = comm.gather((here, affinity(), blas_threads()))
    if rows is None:
        return None
    hosts: dict[str, HostFacts] = {}
    for facts, _, _ in rows:
        known = hosts.setdefault(facts.name, facts)
        hosts[facts.name] = max(known, facts, key=lambda h: h.steal_percent + h.throttled_percent)
    names = list(hosts)
    ranks_on = Counter(facts.name for facts, _, _ in rows)
    cpus = {name: {cpu for facts, mine, _ in rows if facts.name == name for cpu in mine} for name in names}
    build = this_build()
    return Environment(
        hosts=tuple(hosts.values()),
        rank_host=tuple(names.index(facts.name) for facts, _, _ in rows),
        affinity=tuple(cpus for _, cpus, _ in rows),
        oversubscribed=any(
            ranks_on[name] > min(hosts[name].cores, len(cpus[name])) * dilate for name in names
        ),
        mpi=library(),
        launcher=launcher,
        command=command,
        versions=versions(),
        commit=build.commit,
        dirty=build.dirty,
        sources=build.sources,
        kernels=kernels.NAME,
        blas_threads=max(threads for _, _, threads in rows),
        variables=variables(),
        synthetic=synthetic,
    )
