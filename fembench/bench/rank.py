"""What every rank of a job runs: `python -m fembench.bench.rank FOLDER`.

FOLDER holds job.json; rank 0 leaves record.json there, or error.txt with one line where the input
was wrong. Anything else is a crash, and ends the whole job.
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
from fembench.dist.comm import Comm, abort_on_exception, world  # noqa: E402
from fembench.records.store import encode  # noqa: E402


def main(folder: Path, comm: Comm) -> int:
    """Run the job in `folder`; 0, or 2 where the input was wrong."""
    job = msgspec.json.decode((folder / "job.json").read_bytes(), type=Job)
    try:
        record = run_case(comm, job, BEGIN)
    except FembenchError as error:  # raised alike on every rank
        if comm.rank == 0:
            kind = "input" if isinstance(error, InputError) else "failed"
            write_atomic(folder / "error.txt", f"{kind}\n{error}")
        return 2
    if record is not None:
        write_atomic(folder / "record.json", encode(record))
    return 0


if __name__ == "__main__":
    comm = world()
    abort_on_exception(comm)
    status = main(Path(sys.argv[1]), comm)
    comm.Barrier()
    sys.exit(status)
