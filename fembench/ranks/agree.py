"""Turn an input error on one rank into one on all, so that none waits for ever."""

import time
from collections.abc import Callable
from typing import TypeVar

from fembench.base.errors import FembenchError
from fembench.ranks.comm import Comm

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
    request, deadline = comm.Ibarrier(), time.monotonic() + patience
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
