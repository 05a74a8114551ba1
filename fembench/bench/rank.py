"""What every rank of a run does."""

from fembench.bench.case_run import Start, run_case
from fembench.bench.measure import start_plain
from fembench.launch.begun import BEGIN
from fembench.launch.job import Job
from fembench.launch.serve import RankProgram


def program(start: Start) -> RankProgram[Job]:
    """Runs one case."""
    return RankProgram(
        Job,
        lambda job: job.case.placement.ranks,
        lambda comm, job, tell: run_case(comm, job, BEGIN, start),
        "record.json",
    )


PROGRAM = program(start_plain)
