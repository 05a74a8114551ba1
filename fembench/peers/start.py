"""Start a comparison under MPI and return its record."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from fembench.base.config import convert
from fembench.launch.job import REFUSED
from fembench.launch.line import environment, job_line
from fembench.launch.run_job import rank_program, run_job
from fembench.peers.peers_job import PeersJob
from fembench.records.contest import PeersRecord


def launch_peers(
    job: PeersJob,
    *,
    scratch: Path | None = None,
    hostfile: str = "",
    timeout: float = 0.0,
    progress: Callable[[str], None] = lambda line: None,
) -> PeersRecord:
    """Run the job; `progress` gets its lines while it runs. Raises InputError, or FembenchError if it fails.

    All processes get huge pages from their allocator, since our own kernels request theirs.
    """
    line = job_line(job.case.placement.ranks, hostfile)
    end = run_job(
        rank_program("fembench.peers.peers_rank"),
        job,
        line,
        environment(line, "petsc"),
        scratch=scratch,
        timeout=timeout,
        tell=progress,
    )
    if end.result is None and end.kind not in REFUSED:
        end = replace(end, message=f"{end.message}\n{end.output}".strip())
    return convert(msgspec.json.decode(end.content()), PeersRecord, where="record of peers")
