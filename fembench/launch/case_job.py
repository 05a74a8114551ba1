"""Run one case on ranks: what it leaves is a record, or the reason why there is none."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from fembench.base.config import convert
from fembench.launch.allocation import hosts_asked, hosts_for
from fembench.launch.job import Job, Tell
from fembench.launch.line import environment, job_line
from fembench.launch.run_job import JobEnd, rank_program, run_job
from fembench.records.case import Case
from fembench.records.record import Record, Reference

# module of the ranks: parts stay, or blocks may move
RANK = "fembench.bench.case_run", "fembench.balance.session"


def launch(
    case: Case,
    *,
    id: str,
    command: str,
    scratch: Path,
    hostfile: str = "",
    timeout: float = 0.0,
    reference: Reference | None = None,
    fields_path: Path | None = None,
    mpi_options: Sequence[str] = (),
    cores: Sequence[tuple[int, ...]] = (),
    tell: Tell | None = None,
) -> JobEnd[Record]:
    """Run one case under MPI. `scratch`: a folder that rank 0 sees; `timeout` in s, 0: none.

    `cores`: [rank] -> the cores of its host that it runs on; ():
    as the launcher binds them. `tell` gets lines on how far the run is.

    In a lab (`fembench lab run`), FEMBENCH_HOSTFILE and FEMBENCH_SYNTHETIC are set.
    """
    hosts = hosts_for(case.placement, hostfile)
    p = case.placement
    line = job_line(p.ranks, hostfile, mpi_options, hosts, p.threads)
    job = Job(
        case=case,
        id=id,
        command=command,
        reference=reference,
        fields_path=str(fields_path or ""),
        cores=tuple(cores),
        synthetic=os.environ.get("FEMBENCH_SYNTHETIC", ""),
        hosts_asked=hosts_asked(hostfile),
        crowded=line.crowded or bool(cores),
    )
    crowded = case.synthetic.dilate > 1 and line.crowded  # in a lab, its own settings apply
    variables = environment(line, case.method.solver, asleep=crowded)
    program = rank_program(RANK[bool(case.balancing.balance)])
    end = run_job(program, job, line, variables, scratch=scratch, timeout=timeout, tell=tell)
    found = None if end.result is None else convert(msgspec.json.decode(end.result), Record, where="record")
    return JobEnd(found, end.kind, end.message, end.exit_status, end.output)
