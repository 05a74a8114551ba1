"""What a rank of a probe finds on its host."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fembench.host.host import host_facts, job_cpus, node_facts
from fembench.launch.job import RankProgram, Tell
from fembench.records.nodes import NodeFacts

if TYPE_CHECKING:
    from fembench.ranks.comm import Comm

MESSAGE = 1 << 20  # bytes to the next rank: travels as large messages do


class ProbeJob(msgspec.Struct, frozen=True):
    """Where to look."""

    ranks: int
    mark: str  # a file in the folder of results


class ProbedHost(msgspec.Struct, frozen=True):
    """What a rank found on its host."""

    name: str
    sockets: int
    cores: int  # that the job can use at the same time
    threads: int  # hardware threads that it may run on
    memory_bytes: int
    node: NodeFacts  # the whole host
    sees_results: bool
    cpu_quota: float = 0.0  # CPU seconds per second; 0: no limit
    load_average: float = 0.0  # over the last minute


class ProbeFound(msgspec.Struct, frozen=True):
    """The hosts of all ranks."""

    hosts: tuple[ProbedHost, ...]  # [rank]


def look(comm: Comm, job: ProbeJob, tell: Tell) -> ProbeFound | None:
    """The hosts of the ranks on rank 0, None elsewhere. Collective."""
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    comm.sendrecv(bytes(MESSAGE), after, source=before)
    found = comm.gather(probed_host(Path(job.mark)))
    return None if found is None else ProbeFound(tuple(found))


def probed_host(mark: Path) -> ProbedHost:
    """This host, and whether it sees a file."""
    facts = host_facts()
    return ProbedHost(
        facts.name,
        facts.sockets,
        facts.cores,
        len(job_cpus()),
        facts.memory_bytes,
        node_facts(),
        mark.exists(),
        facts.cpu_quota,
        facts.load_average,
    )


PROGRAM = RankProgram(ProbeJob, lambda job: job.ranks, look)
