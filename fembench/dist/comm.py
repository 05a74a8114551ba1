"""The one door to mpi4py. Everyone else receives a communicator as an argument."""

import ctypes
import os
import sys
import traceback
from types import TracebackType
from typing import Any

from mpi4py import MPI

Comm = MPI.Intracomm
Request = MPI.Prequest
SUM, MAX, MIN = MPI.SUM, MPI.MAX, MPI.MIN
IN_PLACE = MPI.IN_PLACE
DOUBLE = MPI.DOUBLE


def world() -> Comm:
    """All ranks of this job."""
    return MPI.COMM_WORLD


def alone() -> Comm:
    """This rank by itself."""
    return MPI.COMM_SELF


def persistent_allreduce(comm: Comm, *arguments: Any) -> Request | None:
    """An all-reduce that can be started again and again, or None where MPI is older than 4.0. Collective."""
    try:
        return comm.Allreduce_init(*arguments)
    except NotImplementedError:
        return None


def wtime() -> float:
    """Seconds by MPI's clock."""
    return MPI.Wtime()


def wtime_address() -> int:
    """Where MPI_Wtime lies in this process, for a C loop that calls it; 0 where it cannot be found."""
    try:
        function = ctypes.CDLL(MPI.__file__).MPI_Wtime
    except (OSError, AttributeError):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def library() -> str:
    """Name and version of the MPI library, one line."""
    return MPI.Get_library_version().strip().splitlines()[0].split(", package:")[0].rstrip("\x00")


def abort_on_exception(comm: Comm) -> None:
    """From now on an exception that nobody catches ends the whole job, naming the rank."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        traceback.print_exception(kind, error, trace)
        abort(comm, error)

    sys.excepthook = hook


def abort(comm: Comm, error: BaseException) -> None:
    """End the whole job with one line that names this rank and its error."""
    host, kind = os.uname().nodename, type(error).__name__
    print(f"fembench: rank {comm.rank} on {host} raised {kind}: {error}", file=sys.stderr, flush=True)
    comm.Abort(3)
