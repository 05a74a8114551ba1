"""Peers: the packages that solve the system, their needs, how to install them.

Parallel peers run on one rank and on the number requested; the others on one. All iterate until
|r|_2 <= tolerance |f|_2, unpreconditioned. Those on a device do so with the same numbers
on each rank, and copy their solution to the host outside the time.

Here is also the job of a comparison, apart from the code of its ranks, which loads MPI.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from fembench.base.arrays import F64
from fembench.base.commands import PIP
from fembench.base.errors import InputError, closest
from fembench.device.find import lack
from fembench.host.checkup import how_to_get_petsc
from fembench.records.case import Case
from fembench.records.contest import Parity

if TYPE_CHECKING:
    from fembench.solve.iterate import StoppingCriterion


CUSPARSE = "aijcusparse"  # PETSc's name of a matrix on a GPU of NVIDIA
CUDA = "this PETSc has no CUDA: install one that was configured --with-cuda"


@dataclass(frozen=True)
class Entry:
    """A peer with a preconditioner."""

    peer: str
    precond: str
    needs: tuple[str, ...] = ()  # packages to import
    get: str = ""  # how to install them
    parallel: bool = False
    device: str = ""  # that it computes on, as in a case; "": the cores

    @property
    def name(self) -> str:
        return f"{self.peer} {self.precond}"


@dataclass(frozen=True)
class Sample:
    """One solve on this rank."""

    seconds: float
    iterations: int
    x: F64  # (3 * n_active,) in the numbering of the rank's subdomain


class Peer(Protocol):
    """A peer whose matrix and preconditioner have been built; building times in seconds."""

    library: str  # name and version
    assembly: float | None  # None: the matrix was given
    setup: float

    def solve(self, control: StoppingCriterion) -> Sample:
        """Solve from u = 0, timing the iterations. Collective if the peer is parallel."""

    def close(self) -> None:
        """Free its resources."""


def _petsc(storage: str, precond: str, device: str = "") -> Entry:
    return Entry(f"petsc-{storage}", precond, ("petsc4py",), how_to_get_petsc(), True, device)


def _own(device: str, precond: str) -> Entry:
    return Entry(f"own-{device}", precond, parallel=True, device=device)


def _cupyx(precond: str) -> Entry:
    return Entry("cupyx", precond, ("cupy",), f"{PIP} cupy-cuda13x", device="gpu")


_OWN = [("sym", name) for name in ("none", "jacobi", "block-jacobi", "two-level", "multigrid")]
_OWN += [(storage, precond) for storage in ("bsr", "csr") for precond in ("none", "jacobi")]
ENTRIES = (
    *(Entry(f"own-{storage}", precond, parallel=True) for storage, precond in _OWN),
    *(Entry("numpy", precond, ("scipy",), f"{PIP} scipy") for precond in ("none", "jacobi")),
    *(Entry("scipy", precond, ("scipy",), f"{PIP} scipy") for precond in ("none", "jacobi")),
    *(_petsc(storage, precond) for storage in ("aij", "baij", "sbaij") for precond in ("none", "jacobi")),
    _petsc("aij", "gamg"),
    Entry("scikit-fem", "pyamg", ("skfem", "pyamg"), f"{PIP} scikit-fem pyamg"),
    *(_own(device, p) for device in ("gpu", "opencl") for p in ("none", "jacobi", "block-jacobi")),
    *(_cupyx(precond) for precond in ("none", "jacobi")),
    *(_petsc(CUSPARSE, precond, "gpu") for precond in ("none", "jacobi")),
)


def chosen(only: Iterable[str], preconds: Iterable[str]) -> tuple[Entry, ...]:
    """The entries whose peer begins with one of `only`, with one of `preconds`.

    Without a choice, all. Raises InputError for a word that matches none.
    """
    peers, methods = list(only), list(preconds)
    for word in peers:
        if not any(_fits(e, word) for e in ENTRIES):
            raise _unknown("peer", word, [e.peer for e in ENTRIES])
    for word in methods:
        if all(e.precond != word for e in ENTRIES):
            raise _unknown("preconditioner of peers", word, [e.precond for e in ENTRIES])
    found = tuple(
        e
        for e in ENTRIES
        if (not peers or any(_fits(e, word) for word in peers)) and (not methods or e.precond in methods)
    )
    if not found:
        raise InputError(f"no peer among {', '.join(peers)} has preconditioner {' or '.join(methods)}")
    return found


def _fits(entry: Entry, word: str) -> bool:
    return entry.peer == word or entry.peer.startswith(f"{word}-")


def _unknown(what: str, word: str, known: Sequence[str]) -> InputError:
    names = list(dict.fromkeys(known))
    near = closest(word, names)
    return InputError(f"{what} '{word}': expected one of {', '.join(names)}; the nearest is '{near}'")


def missing(entry: Entry) -> str:
    """How to install what the entry needs and this machine lacks; "" for nothing."""
    lacking = [name for name in entry.needs if importlib.util.find_spec(name) is None]
    if lacking:
        return f"no {', '.join(lacking)}: {entry.get}"
    if entry.device and (why := lack(entry.device)):
        return why
    if entry.peer != f"petsc-{CUSPARSE}":
        return ""
    from fembench.solve.petsc import has_cuda

    return "" if has_cuda() else CUDA


class PeersJob(msgspec.Struct, frozen=True, kw_only=True):
    """The job as its ranks read it."""

    case: Case  # mesh, problem, ranks, partition, relative tolerance
    names: tuple[str, ...]  # Entry.name
    repetitions: int
    iterations: int = 0  # > 0: iterations per repetition; 0: iterate to the tolerance
    parity: Parity = "solution"
    export: str = ""
    command: str = ""
    launcher: str = ""
