"""Ask the hosts of a job, by a rank on each, what they are, and for the transport."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fembench.base.errors import InputError
from fembench.host.host import host_facts, job_cpus, node_facts
from fembench.launch.hosts import HostSlots
from fembench.launch.job import RankProgram, Tell
from fembench.launch.line import environment, job_line
from fembench.launch.run_job import JobEnd, rank_program, run_job
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
    after = (comm.rank + 1) % comm.size
    before = (comm.rank - 1) % comm.size
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


PATIENCE = 60.0  # seconds for the ranks to start
TAIL = 400  # lines of output to keep, since libraries name their transport among others
TOLD = {  # variables that make MPI libraries name it
    "OMPI_MCA_pml_base_verbose": "10",
    "OMPI_MCA_btl_base_verbose": "30",
    "OMPI_MCA_mtl_base_verbose": "10",
    "I_MPI_DEBUG": "2",
    "MPIR_CVAR_DEBUG_SUMMARY": "1",
    "UCX_LOG_LEVEL": "info",
}
_TRANSPORTS = (  # the first that matches counts
    r"UCX\s+INFO\s.*?inter-node\S*\((\S+?)[ )]",
    r"UCX\s+INFO\s.*?\btag\((\S+?)[ )]",
    r"libfabric provider: (\S+)",
    r"provider: (\w[\w;]*), score",
    r"select: component (cm|ucx) selected",
    r"Using ((?!self\b)\w+) btl (?:for send )?to ",
)


def probe(hosts: Sequence[HostSlots], ranks: int, folder: Path) -> JobEnd[bytes]:
    """The end of a job that looks at its hosts; `hosts` (): this machine. InputError.

    `folder`: where results go.
    """
    line = job_line(ranks, hosts=hosts)
    try:
        mark = tempfile.NamedTemporaryFile(prefix=".hosts-", dir=folder.resolve())  # noqa: SIM115
    except OSError as error:
        raise InputError(f"{folder.resolve()}: results cannot be written there ({error.strerror})") from None
    with mark:
        return run_job(
            rank_program("fembench.launch.probe"),
            ProbeJob(ranks, mark.name),
            line,
            environment(line) | TOLD,
            scratch=folder,
            timeout=PATIENCE,
            tail=TAIL,
            warn=False,
        )


def found_in(end: JobEnd[bytes]) -> tuple[ProbedHost, ...]:
    """[rank] -> its host. Raises InputError or RunFailedError if there is no result."""
    return msgspec.json.decode(end.content(), type=ProbeFound).hosts


def transport_in(output: str) -> str:
    """The transport, as the library names it: 'tcp', 'rc_mlx5/mlx5_0:1'; or ""."""
    for pattern in _TRANSPORTS:
        names = dict.fromkeys(re.findall(pattern, output))
        if names:
            return ", ".join(names)
    return ""
