"""Run a small program under MPI and return its record."""

import os
import sys
import tempfile
from pathlib import Path

import msgspec

from fembench.base.config import convert
from fembench.base.errors import InputError, RunFailedError
from fembench.launch.diagnosis import why_nothing
from fembench.launch.launcher import SCRATCH, environment, launcher_line, run_ranks
from fembench.studies.programs.job import AppJob
from fembench.studies.programs.record import AppCase, AppPrediction, AppRecord
from fembench.synthetic.speeds import parse_speeds

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
    line, kind = launcher_line(case.ranks, hostfile)
    parse_speeds(case.emulate, case.ranks)
    if not 1 <= case.dilate < float("inf"):
        raise InputError(f"dilate = {case.dilate}: expected a number of at least 1")
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=scratch) as name:
        folder = Path(name)
        job = AppJob(
            case=case,
            id=id,
            command=command,
            launcher=" ".join([Path(line[0]).name, *line[1:]]),
            predicted=predicted,
            simulated=simulated,
            calibrate=calibrate,
            synthetic=os.environ.get("FEMBENCH_SYNTHETIC", ""),
        )
        (folder / "job.json").write_bytes(msgspec.json.encode(job))
        full = [*line, sys.executable, "-m", "fembench.studies.programs.program_rank", name]
        ended = run_ranks(full, environment(kind, asleep=case.dilate > 1), timeout)
        result = folder / "app.json"
        if result.exists():
            return convert(msgspec.json.decode(result.read_bytes()), AppRecord, where="record")
        why, message = why_nothing(folder, ended, timeout)
        raise InputError(message) if why == "input" else RunFailedError(message)
