"""Bulk-synchronous programs as separate jobs: input and output of the ranks."""

from pathlib import Path
from typing import Literal

import msgspec

from fembench.launch.line import job_line
from fembench.launch.run_job import measure
from fembench.records.ledger import Ledger


class PolicyRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run of a program with one policy."""

    policy: str
    alpha: int = 2
    band: float = 0.3
    gamma: int = 1


class ProgramJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The input of the ranks: one program, the runs to make of it, and
    the number of repetitions."""

    program: Literal["shear-sort", "fractal"]
    size: tuple[int, ...]  # (N,), or (height, width, r)
    n_blocks: int
    supersteps: int  # of a sort; rounds of the ring for the fractal
    speeds: tuple[float, ...]  # [rank], at most 1
    dilate: float
    cells: tuple[PolicyRun, ...]
    repetitions: int = 1


class CellTimes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result of one PolicyRun."""

    cell: PolicyRun
    seconds: tuple[float, ...]  # [repetition]
    ledger: Ledger  # of the last repetition
    agrees: bool  # same answer as the first run


class ProgramTimes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result of a job."""

    job: ProgramJob
    cells: tuple[CellTimes, ...]
    others: tuple[float, float] = (-1.0, 100.0)  # used by others where most, and its uncertainty, in per cent


def launch_program(job: ProgramJob, scratch: Path) -> ProgramTimes:
    """Run the job under MPI. Raises RunFailedError if it leaves no result."""
    line, timeout = job_line(len(job.speeds)), max(600.0, 300.0 * job.repetitions)
    program = "fembench_studies.bsp.bsp_rank"
    return measure(program, job, ProgramTimes, line, asleep=True, scratch=scratch, timeout=timeout)
