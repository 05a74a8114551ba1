"""What every rank of a job runs: `python -m fembench.bench.rank FOLDER`.

FOLDER holds job.json; rank 0 leaves record.json there, or error.txt (a kind, then one line) if the
case could not be run. Anything else is a crash, and ends the whole job.
"""

import time

BEGIN = time.perf_counter()  # the first line of the program: start-up is counted from here

import sys  # noqa: E402
from pathlib import Path  # noqa: E402

import msgspec  # noqa: E402

from fembench.bench.case_run import Start, run_case  # noqa: E402
from fembench.bench.measure import start_plain  # noqa: E402
from fembench.launch.job import Job  # noqa: E402
from fembench.launch.serve import expect, serve  # noqa: E402
from fembench.ranks.comm import Comm, abort_on_exception, world  # noqa: E402
from fembench.records.store import encode  # noqa: E402


def main(folder: Path, comm: Comm, begin: float, start: Start) -> int:
    """Run the job in `folder`; 0, or 2 if it could not be run."""

    def run(text: bytes) -> bytes | None:
        job = msgspec.json.decode(text, type=Job)
        expect(comm, job.case.placement.ranks)
        record = run_case(comm, job, begin, start)
        return None if record is None else encode(record)

    return serve(folder, comm, run, "record.json")


if __name__ == "__main__":
    world_comm = world()
    abort_on_exception(world_comm)
    sys.exit(main(Path(sys.argv[1]), world_comm, BEGIN, start_plain))
