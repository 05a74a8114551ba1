"""Bulk-synchronous programs as separate jobs: input and output of the ranks."""

from pathlib import Path
from typing import Literal

import msgspec

from fembench.launch.launcher import environment, launcher_line
from fembench.records.ledger import Ledger
from fembench.studies.programs.launch import run_on_ranks


class PolicyRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run of a program with one policy."""

    policy: str
    alpha: int = 2
    band: float = 0.3
    gamma: int = 1


class ProgramJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The input of the ranks: one program, the runs to make of it, and the number of repetitions."""

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


def launch_program(job: ProgramJob, scratch: Path, timeout: float = 600.0) -> ProgramTimes:
    """Run the job under MPI. Raises InputError, or RunFailedError if it leaves no result."""
    line, kind = launcher_line(len(job.speeds))
    variables = environment(kind, asleep=True)
    found = run_on_ranks("bsp.bsp_rank", job, "result.json", line, variables, scratch, timeout)
    return msgspec.json.decode(found, type=ProgramTimes)
