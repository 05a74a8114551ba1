"""What every rank of a job runs: `python -m fembench.bench.rank FOLDER`.

FOLDER holds job.json; rank 0 leaves record.json there, or error.txt (a kind, then one line) where the
case could not be run. Anything else is a crash, and ends the whole job.
"""

import time

BEGIN = time.perf_counter()  # the first line of the program: start-up is counted from here

import sys  # noqa: E402
from pathlib import Path  # noqa: E402

import msgspec  # noqa: E402

from fembench.base.errors import FembenchError, InputError  # noqa: E402
from fembench.base.files import write_atomic  # noqa: E402
from fembench.bench.case_run import run_case  # noqa: E402
from fembench.bench.launcher import Job  # noqa: E402
from fembench.dist.agree import all_arrive  # noqa: E402
from fembench.dist.comm import Comm, abort, abort_on_exception, world  # noqa: E402
from fembench.records.store import encode  # noqa: E402

PATIENCE = 5.0  # seconds that a rank with an error waits for the others to have it too
LONG = 600.0  # seconds that the others wait for rank 0 to write the record


def main(folder: Path, comm: Comm) -> int:
    """Run the job in `folder`, which rank 0 alone must see; 0, or 2 where it could not be run."""
    text = comm.bcast((folder / "job.json").read_bytes() if comm.rank == 0 else None)
    job = msgspec.json.decode(text, type=Job)
    try:
        record = run_case(comm, job, BEGIN)
        if record is not None:
            write_atomic(folder / "record.json", encode(record))
    except FembenchError as error:
        if not all_arrive(comm, PATIENCE):  # raised on some ranks only
            abort(comm, error)
        if comm.rank == 0:
            kind = "input" if isinstance(error, InputError) else "failed"
            write_atomic(folder / "error.txt", f"{kind}\n{error}")
        return 2
    all_arrive(comm, LONG)
    return 0


if __name__ == "__main__":
    world_comm = world()
    abort_on_exception(world_comm)
    sys.exit(main(Path(sys.argv[1]), world_comm))
