"""Ask the hosts of a job, by a rank on each, what they are, and for the transport."""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from fembench.base.errors import InputError
from fembench.launch.hosts import HostSlots
from fembench.launch.line import environment, job_line
from fembench.launch.probed import ProbedHost, ProbeFound, ProbeJob
from fembench.launch.run_job import JobEnd, rank_program, run_job

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
            rank_program("fembench.launch.probed"),
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
