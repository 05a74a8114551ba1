"""What every rank of `fembench study app` runs: `python -m fembench.studies.programs.program_rank FOLDER`.

FOLDER holds job.json; rank 0 leaves app.json there, or error.txt.
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
    """Run the job in `folder`: 0, or 2 where it could not be run."""

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
