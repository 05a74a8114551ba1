"""Process of each rank of `fembench study app`."""

from fembench.launch.job import RankProgram, Tell
from fembench.ranks.comm import Comm
from fembench.synthetic.waits import FINE, timer_slack
from fembench_studies.programs.job import AppJob, run_job
from fembench_studies.programs.record import AppRecord


def run(comm: Comm, job: AppJob, tell: Tell) -> AppRecord | None:
    """The record on rank 0, None elsewhere. Collective."""
    if job.case.dilate > 1:
        timer_slack(FINE)
    return run_job(comm, job)


PROGRAM = RankProgram(AppJob, lambda job: job.case.ranks, run)
