"""The only importer of mpi4py. All other modules receive a communicator as an argument.

Functions of every iteration are bound to their arguments here and called from C
(`_native.pyx`); if that is not built, or finds no MPI functions, mpi4py is used.

An input error on one rank is turned into one on all, so that none waits for ever.
"""

import ctypes
import functools
import platform
import sys
import time
import traceback
from array import array
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar

from mpi4py import MPI

from fembench.base.errors import FembenchError
from fembench.base.plugins import compiled_module

native: Any = compiled_module("fembench.ranks._native")  # None: mpi4py is used

Comm = MPI.Intracomm
Request = MPI.Prequest
SUM, MAX, MIN = MPI.SUM, MPI.MAX, MPI.MIN
IN_PLACE = MPI.IN_PLACE
DOUBLE = MPI.DOUBLE


def world() -> Comm:
    """All ranks of this job."""
    return MPI.COMM_WORLD


def alone() -> Comm:
    """A communicator of this rank alone."""
    return MPI.COMM_SELF


def persistent_allreduce(comm: Comm, *arguments: Any) -> Request | None:
    """A persistent all-reduce, or None if MPI is older than 4.0. Collective."""
    try:
        return comm.Allreduce_init(*arguments)
    except NotImplementedError:
        return None


@functools.cache
def address(name: str) -> int:
    """The address of an MPI function in this process, for C; 0 if it cannot be found."""
    try:
        function = getattr(ctypes.CDLL(MPI.__file__), name)
    except (OSError, AttributeError):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def start_and_wait(requests: Sequence[Request]) -> tuple[Callable[[], object], Callable[[], object]]:
    """Two functions: one starts all these persistent requests, one waits for all of them.

    The requests must live as long as the calls.
    """
    startall = address("MPI_Startall")
    waitall = address("MPI_Waitall")
    if native is None or not (startall and waitall):
        return lambda: Request.Startall(list(requests)), lambda: wait(*requests)
    bound = native.Requests(startall, waitall, handles(requests), len(requests), MPI._sizeof(MPI.Status))
    return bound.start, bound.wait


def wait(*requests: MPI.Request) -> None:
    """Return when all requests are complete."""
    MPI.Request.Waitall(requests)


def send_to(comm: Comm, values: Any, rank: int, tag: int) -> Callable[[], object]:
    """A function that sends doubles to a rank and returns when they may be overwritten."""
    send = address("MPI_Send")
    if native is None or not send:
        return lambda: comm.Send([values, DOUBLE], rank, tag)
    return native.Message(send, values, rank, tag, *_typed(comm)).send


def receive_from(comm: Comm, values: Any, rank: int, tag: int) -> Callable[[], object]:
    """A function that returns when doubles from a rank have arrived."""
    receive = address("MPI_Recv")
    if native is None or not receive:
        return lambda: comm.Recv([values, DOUBLE], rank, tag)
    return native.Message(receive, values, rank, tag, *_typed(comm)).receive


def _typed(comm: Comm) -> tuple[int, int, int]:
    """Handles of the datatype and the communicator, and the bytes of a status."""
    return _handle(DOUBLE), _handle(comm), MPI._sizeof(MPI.Status)


def sum_in_place(comm: Comm, values: "array[float]") -> Callable[[], object]:
    """A function that replaces doubles by their sums over ranks. Collective."""
    allreduce = address("MPI_Allreduce")
    if native is None or not allreduce:
        return lambda: comm.Allreduce(IN_PLACE, values, SUM)
    return native.Sum(allreduce, values, *map(_handle, (DOUBLE, SUM, comm))).run


def handles(requests: Sequence[Request]) -> bytes:
    """The requests as an array of MPI_Request: integers or pointers, as MPI has them."""
    size = MPI._sizeof(MPI.Request)
    return b"".join(_handle(r).to_bytes(size, sys.byteorder) for r in requests)


def _handle(object_: Any) -> int:
    """An MPI object as the number that C passes: MPICH's have 32 bits with a sign."""
    return MPI._handleof(object_) & ((1 << 8 * MPI._sizeof(object_)) - 1)


def library() -> str:
    """Name and version of the MPI library, one line."""
    return MPI.Get_library_version().strip().splitlines()[0].split(", package:")[0].rstrip("\x00")


def abort_on_exception(comm: Comm, tell: Callable[[str], None]) -> None:
    """An uncaught exception now ends the job and names the rank; `tell` as for `abort`."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        traceback.print_exception(kind, error, trace)
        abort(comm, error, tell)

    sys.excepthook = hook


def abort(comm: Comm, error: BaseException, tell: Callable[[str], None]) -> None:
    """End the whole job with a line on this rank and its error, which `tell` gets, too."""
    line = f"fembench: rank {comm.rank} on {platform.node()} raised {type(error).__name__}: {error}"
    tell(line)
    sys.stderr.write(f"{line}\n")  # at once
    sys.stderr.flush()
    comm.Abort(3)


T = TypeVar("T")
POLL = 3e-4  # seconds between two tests by a rank that dozes


def together(comm: Comm, function: Callable[[], T]) -> T:
    """function() on every rank; all raise the lowest rank's FembenchError. Collective."""
    result, error = _attempt(function)
    first = next((e for e in comm.allgather(error) if e is not None), None)
    if first is not None:
        raise first
    return result  # type: ignore[return-value]


def on_root(comm: Comm, function: Callable[[], T]) -> T | None:
    """function() on rank 0, None elsewhere; all raise its FembenchError. Collective."""
    result, error = _attempt(function) if comm.rank == 0 else (None, None)
    error = comm.bcast(error)
    if error is not None:
        raise error
    return result


def all_arrive(comm: Comm, patience: float) -> bool:
    """Whether every rank comes to this call within `patience` seconds."""
    request = comm.Ibarrier()
    deadline = time.monotonic() + patience
    while not request.Test():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)
    return True


def doze(comm: Comm, nap: float) -> None:
    """A barrier that yields the processor: sleeps `nap` seconds, then tests. Collective."""
    request = comm.Ibarrier()
    time.sleep(nap)
    while not request.Test():
        time.sleep(POLL)


def _attempt(function: Callable[[], T]) -> tuple[T | None, FembenchError | None]:
    try:
        return function(), None
    except FembenchError as error:
        return None, error
