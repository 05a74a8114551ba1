"""What the ranks of every job do: read the job, run it, and leave its result or the reason for none."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from fembench.base.config import encode
from fembench.base.errors import FembenchError, InputError
from fembench.base.files import write_atomic
from fembench.base.units import plural
from fembench.launch.job import ERROR, JOB, PROGRESS
from fembench.ranks.agree import all_arrive
from fembench.ranks.comm import Comm, abort, abort_on_exception, world

PATIENCE = 5.0  # seconds that a rank with an error waits for the others to have it, too
LONG = 600.0  # seconds that the others wait for rank 0 to write the result
J = TypeVar("J", bound=msgspec.Struct)
Tell = Callable[[str], None]


@dataclass(frozen=True)
class RankProgram(Generic[J]):
    """What every rank of a job runs: `python -m MODULE FOLDER`."""

    job: type[J]
    n_ranks: Callable[[J], int]  # that the job needs
    run: Callable[[Comm, J, Tell], Any]  # what becomes the result on rank 0, None elsewhere. Collective
    result: str  # its file


def serve(program: RankProgram[J], folder: str) -> int:
    """Run the job.json in `folder`, which only rank 0 needs to see; returns 0, or 2 if it failed.
    Collective.

    Rank 0 appends lines to progress.txt while it runs, and leaves the result, or for a FembenchError an
    error.txt (a kind, then the message). Any other exception is a crash and ends the whole job.
    """
    comm = world()
    abort_on_exception(comm)
    return _serve(program, Path(folder), comm)


def _serve(program: RankProgram[J], folder: Path, comm: Comm) -> int:
    text = comm.bcast((folder / JOB).read_bytes() if comm.rank == 0 else None)

    def tell(line: str) -> None:
        if comm.rank == 0:
            with open(folder / PROGRESS, "a", encoding="utf-8") as stream:
                stream.write(f"{line}\n")

    try:
        job = msgspec.json.decode(text, type=program.job)
        _expect(comm, program.n_ranks(job))
        found = program.run(comm, job, tell)
        if found is not None:
            write_atomic(folder / program.result, encode(found))
    except FembenchError as error:
        if not all_arrive(comm, PATIENCE):  # raised on some ranks only
            abort(comm, error)
        if comm.rank == 0:
            kind = "input" if isinstance(error, InputError) else "failed"
            write_atomic(folder / ERROR, f"{kind}\n{error}")
        return 2
    all_arrive(comm, LONG)
    return 0


def _expect(comm: Comm, ranks: int) -> None:
    """Raises InputError if the launcher started a different number of ranks than requested."""
    if comm.size == 1 < ranks:
        raise InputError(
            f"{ranks} ranks were started as {ranks} jobs of one rank each: the launcher does not belong to "
            "mpi4py's MPI library; fembench doctor names both"
        )
    if comm.size != ranks:
        raise InputError(f"{plural(ranks, 'rank')} requested, but the launcher started {comm.size}")
