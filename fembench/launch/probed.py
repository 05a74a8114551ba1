"""What a rank of a probe finds on its host."""

from pathlib import Path

import msgspec

from fembench.host import host
from fembench.ranks.comm import Comm

MESSAGE = 1 << 20  # bytes that each rank sends to the next: enough for the transport of large messages


class ProbeJob(msgspec.Struct, frozen=True):
    """Where to look."""

    ranks: int
    mark: str  # a file in the folder of results


class ProbedHost(msgspec.Struct, frozen=True):
    """What a rank found on its host."""

    name: str
    sockets: int
    numa_nodes: int  # 0: unknown
    cores: int  # physical, of all that the job may use
    threads: int  # hardware threads of these
    memory_bytes: int
    accelerators: tuple[str, ...]
    sees_results: bool


class ProbeFound(msgspec.Struct, frozen=True):
    """The hosts of all ranks."""

    hosts: tuple[ProbedHost, ...]  # [rank]


def look(comm: Comm, job: ProbeJob) -> ProbeFound | None:
    """The hosts of the ranks on rank 0, None elsewhere. Collective."""
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    comm.sendrecv(bytes(MESSAGE), after, source=before)
    found = comm.gather(probed_host(Path(job.mark)))
    return None if found is None else ProbeFound(tuple(found))


def probed_host(mark: Path) -> ProbedHost:
    """This host, and whether it sees a file."""
    facts, cpus = host.host_facts(), host.job_cpus()
    return ProbedHost(
        facts.name,
        facts.sockets,
        len(host.numa_nodes()),
        len(host.physical_cores(cpus)),
        len(cpus),
        facts.memory_bytes,
        host.accelerators(),
        mark.exists(),
    )
