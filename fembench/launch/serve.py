"""What the ranks of every job do: read the job, run it, and leave its result or the reason for none."""

from collections.abc import Callable
from pathlib import Path

from fembench.base.errors import FembenchError, InputError
from fembench.base.files import write_atomic
from fembench.base.units import plural
from fembench.ranks.agree import all_arrive
from fembench.ranks.comm import Comm, abort

PATIENCE = 5.0  # seconds that a rank with an error waits for the others to have it, too
LONG = 600.0  # seconds that the others wait for rank 0 to write the result


def expect(comm: Comm, ranks: int) -> None:
    """Raises InputError if the launcher started a different number of ranks than requested."""
    if comm.size == 1 < ranks:
        raise InputError(
            f"{ranks} ranks were started as {ranks} jobs of one rank each: the launcher does not belong to "
            "mpi4py's MPI library; fembench doctor names both"
        )
    if comm.size != ranks:
        raise InputError(f"{plural(ranks, 'rank')} requested, but the launcher started {comm.size}")


def serve(folder: Path, comm: Comm, run: Callable[[bytes], bytes | None], result: str) -> int:
    """`run` the job.json in `folder`, which only rank 0 needs to see; returns 0, or 2 if it could not be run.

    What `run` returns on rank 0 becomes the file `result`; a FembenchError becomes error.txt. Collective.
    """
    text = comm.bcast((folder / "job.json").read_bytes() if comm.rank == 0 else None)
    try:
        content = run(text)
        if content is not None:
            write_atomic(folder / result, content)
    except FembenchError as error:
        if not all_arrive(comm, PATIENCE):  # raised on some ranks only
            abort(comm, error)
        if comm.rank == 0:
            kind = "input" if isinstance(error, InputError) else "failed"
            write_atomic(folder / "error.txt", f"{kind}\n{error}")
        return 2
    all_arrive(comm, LONG)
    return 0
