"""Run a small program under MPI and return its record."""

import os
from pathlib import Path

from fembench.errors import InputError
from fembench.launch.line import job_line
from fembench.launch.run_job import measure
from fembench.synthetic.speeds import parse_speeds
from fembench_studies.programs.job import AppJob
from fembench_studies.programs.record import AppCase, AppPrediction, AppRecord

PATIENCE = 600.0  # seconds after which a job is ended


def launch(
    case: AppCase,
    *,
    id: str,
    scratch: Path,
    command: str = "",
    hostfile: str = "",
    predicted: AppPrediction | None = None,
    simulated: AppPrediction | None = None,
    calibrate: int = 0,
    timeout: float = PATIENCE,
) -> AppRecord:
    """The record of one job. `scratch`: a folder that rank 0's host can also see.

    Raises InputError, or RunFailedError if the job ends without a record.
    """
    line = job_line(case.ranks, hostfile)
    parse_speeds(case.emulate, case.ranks)
    if not 1 <= case.dilate < float("inf"):
        raise InputError(f"dilate = {case.dilate}: expected a number of at least 1")
    job = AppJob(
        case=case,
        id=id,
        command=command,
        predicted=predicted,
        simulated=simulated,
        calibrate=calibrate,
        synthetic=os.environ.get("FEMBENCH_SYNTHETIC", ""),
    )
    program, asleep = "fembench_studies.programs.program_rank", case.dilate > 1
    return measure(program, job, AppRecord, line, asleep=asleep, scratch=scratch, timeout=timeout)
