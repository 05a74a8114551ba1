"""What every rank of a job runs: `python -m fembench.bench.rank FOLDER`."""

import time

BEGIN = time.perf_counter()  # the first line of the program: start-up is counted from here

import sys  # noqa: E402

from fembench.bench.case_run import Start, run_case  # noqa: E402
from fembench.bench.measure import start_plain  # noqa: E402
from fembench.launch.job import Job  # noqa: E402
from fembench.launch.serve import RankProgram, serve  # noqa: E402


def program(begin: float, start: Start) -> RankProgram[Job]:
    """Runs one case; its start-up is counted from `begin`."""
    return RankProgram(
        Job,
        lambda job: job.case.placement.ranks,
        lambda comm, job, tell: run_case(comm, job, begin, start),
        "record.json",
    )


if __name__ == "__main__":
    sys.exit(serve(program(BEGIN, start_plain), sys.argv[1]))
