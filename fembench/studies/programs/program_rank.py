"""Process of each rank of `fembench study app`: `python -m fembench.studies.programs.program_rank FOLDER`.

It reads FOLDER/job.json; rank 0 writes app.json or error.txt there.
"""

import sys
from pathlib import Path

import msgspec

from fembench.launch.serve import expect, serve
from fembench.ranks.comm import Comm, abort_on_exception, world
from fembench.records.store import encode
from fembench.studies.programs.job import AppJob, run_job
from fembench.synthetic.waits import FINE, timer_slack


def main(folder: Path, comm: Comm) -> int:
    """Run the job in `folder`; returns the exit status, 2 if it could not run."""

    def run(text: bytes) -> bytes | None:
        job = msgspec.json.decode(text, type=AppJob)
        expect(comm, job.case.ranks)
        if job.case.dilate > 1:
            timer_slack(FINE)
        record = run_job(comm, job)
        return None if record is None else encode(record)

    return serve(folder, comm, run, "app.json")


if __name__ == "__main__":
    world_comm = world()
    abort_on_exception(world_comm)
    sys.exit(main(Path(sys.argv[1]), world_comm))
