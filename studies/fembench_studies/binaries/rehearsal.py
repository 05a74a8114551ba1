"""A rehearsal: all ranks of a compiled program run on this machine without MPI, and their computing is timed.

A library that is loaded before the program takes the place of MPI (`rehearse.c.txt`). It passes the messages,
so that every rank computes with its real data, in its real loops, branches and caches. Ranks compute one at a
time, in the order of their own clocks, which also decides from whom a receive from any source takes its
message; so there may be more ranks than cores. In a second run, ranks compute at the same time, as many as
there are cores: what they take from each other (memory, shared caches) is the ratio of both. Both runs are
repeated, and the spread is the uncertainty of the costs.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fembench.errors import InputError
from fembench.host.host import affinity, usable_cores
from fembench.model.graph import (
    Collective,
    Compute,
    Event,
    ExecutionGraph,
    Kind,
    Program,
    Receive,
    Send,
    Wait,
)
from fembench_studies.binaries.counts import Passed
from fembench_studies.binaries.executable import check, compile_c, loaded
from fembench_studies.binaries.links import Link
from fembench_studies.binaries.sharing import Cores, place

SOURCE = Path(__file__).with_name("rehearse.c.txt")
COUNTING = Path(__file__).with_name("count_branches.c.txt")
PHASES = ("compute", "message")
COMPUTE, MESSAGE = 0, 1
ROW = np.dtype(
    [("seconds", "f8"), ("site", "u8"), ("m", "i8")]
    + [(n, "i4") for n in ("kind", "peer", "tag", "blocking")]
)
KINDS: tuple[Kind, ...] = ("allreduce", "allgather", "bcast", "reduce", "barrier")
SEND, RECEIVE, WAIT = 0, 1, 2
ROUNDS, ENOUGH = 5, 20.0  # repetitions; no further one begins after so many seconds
MOST = 900.0  # seconds of one run
RANKS = 256  # as in the library
ROOM = 1 << 34  # bytes of messages under way; the file is sparse
Rows = npt.NDArray[np.void]


@dataclass(frozen=True)
class Repetition:
    """What every rank did, each event with the computing before it."""

    rows: list[Rows]  # [rank]
    contention: float  # how much longer computing takes when ranks compute at the same time

    def graph(self, *, contended: bool = False) -> ExecutionGraph:
        """The execution graph, with or without what ranks take from each other."""
        factor = self.contention if contended else 1.0
        return ExecutionGraph(phases=PHASES, programs=tuple(_program(rows, factor) for rows in self.rows))


def rehearse(
    binary: Path, arguments: Sequence[str], ranks: int, link: Link, cores: int = RANKS
) -> list[Repetition]:
    """The repetitions of a rehearsal for a run on so many cores.

    The link and the cores decide the order of messages from different ranks. Raises InputError for a program
    that cannot be rehearsed.
    """
    begin = time.monotonic()
    found: list[Repetition] = []
    with _ready(binary, arguments, ranks, link) as one, _awake():
        while len(found) < ROUNDS and (len(found) < 2 or time.monotonic() - begin < ENOUGH):
            placed = replace(one, cores=place(ranks, cores, len(found)))
            alone, together = placed.rows(1), placed.rows(min(ranks, usable_cores()))
            found.append(Repetition(alone, _seconds(together) / max(_seconds(alone), 1e-9)))
    middle = statistics.median(r.contention for r in found)
    return [Repetition(r.rows, max(middle, 1.0)) for r in found]


def count(
    binary: Path, branches: Iterable[int], arguments: Sequence[str], ranks: int, link: Link
) -> list[dict[int, Passed]]:
    """[rank] the outcomes of branches, those that it passed, in a rehearsal of its own. Raises InputError."""
    with _ready(binary, arguments, ranks, link) as one:
        library, listed = one.folder / "count.so", one.folder / "branches"
        listed.write_text("".join(f"{a:x}\n" for a in sorted(branches)))
        compile_c(COUNTING.read_text(encoding="utf-8"), library)
        counting = {"LD_PRELOAD": f"{library}:{one.library}", "FEMBENCH_REHEARSE_BRANCHES": str(listed)}
        replace(one, variables=counting).rows(1)
        return [_outcomes(Path(f"{listed}.{rank}")) for rank in range(ranks)]


def _outcomes(file: Path) -> dict[int, Passed]:
    found = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        address, *numbers = line.split()
        stayed, taken, *longest = map(int, numbers)
        if stayed + taken:
            found[int(address, 16)] = Passed([stayed, taken], longest)
    return found


@contextmanager
def _ready(binary: Path, arguments: Sequence[str], ranks: int, link: Link) -> "Iterator[_Run]":
    """A program, and the library that takes the place of its MPI. Raises InputError."""
    if not 1 <= ranks <= RANKS:
        raise InputError(f"{ranks} ranks; expected 1 to {RANKS} in a rehearsal, or --static")
    with tempfile.TemporaryDirectory() as folder:
        library = _library(Path(folder), binary)
        network = f"{link.latency} {1 / link.bandwidth}"
        yield _Run(Path(folder), library, binary.resolve(), arguments, ranks, network, tuple(range(ranks)))


@contextmanager
def _awake() -> Iterator[None]:
    """Keep the cores awake: a rank that wakes an idle core computes more slowly than one that has spun."""
    text = (
        "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); "
        "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\n"
        "while os.getppid() == int(sys.argv[2]): pass"
    )
    words = [[sys.executable, "-S", "-c", text, str(cpu), str(os.getpid())] for cpu in affinity()]
    keepers = [subprocess.Popen(one, stderr=subprocess.DEVNULL) for one in words]
    try:
        yield
    finally:
        for keeper in keepers:
            keeper.kill()
            keeper.wait()


def _seconds(rows: Sequence[Rows]) -> float:
    return float(sum(one["seconds"].sum() for one in rows))


@dataclass(frozen=True)
class _Run:
    """How the ranks of a program are started."""

    folder: Path
    library: Path
    binary: Path
    arguments: Sequence[str]
    ranks: int
    network: str  # latency and seconds per byte, for the clocks of the ranks
    cores: Cores  # the same: a core computes for one rank at a time
    variables: Mapping[str, str] = field(default_factory=dict)  # of the environment, besides those below

    def rows(self, together: int) -> list[Rows]:
        """Run all ranks, so many of them at the same time. Raises InputError."""
        world = self.folder / "world"
        with world.open("wb") as file:
            file.truncate(ROOM)
        with self._started(world, together) as processes:
            end = time.monotonic() + MOST
            while any(p.poll() is None for p in processes) and not any(p.poll() for p in processes):
                if time.monotonic() > end:
                    raise InputError(
                        f"{self.binary} computes for more than {MOST:.0f} s; expected a smaller case"
                    )
                time.sleep(0.002)
            for rank, p in enumerate(processes):
                if p.poll():
                    raise InputError(f"{self.binary}: {self._failure(rank, p.returncode, world)}")
        return [self._log(rank, world) for rank in range(self.ranks)]

    @contextmanager
    def _started(self, world: Path, together: int) -> Iterator[list[subprocess.Popen[bytes]]]:
        cpus, processes = affinity(), []
        try:
            for rank in range(self.ranks):
                cpu = cpus[rank % len(cpus)] if together in (1, self.ranks) else -1
                variables = {
                    "LD_PRELOAD": str(self.library),
                    "FEMBENCH_REHEARSE": str(self.binary),
                    "FEMBENCH_REHEARSE_WORLD": str(world),
                    "FEMBENCH_REHEARSE_AS": f"{rank} {self.ranks} {together} {cpu} {self.network} "
                    f"{self.cores[rank]}",
                }
                with Path(f"{world}.{rank}.error").open("wb") as error:
                    processes.append(
                        subprocess.Popen(
                            [self.binary, *self.arguments],
                            env={**os.environ, **variables, **self.variables},
                            stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL,
                            stderr=error,
                        )
                    )
            yield processes
        except OSError as error:
            raise InputError(f"{self.binary}: {error.strerror}; expected an executable") from None
        finally:
            for p in processes:
                p.kill()
                p.wait()

    def _failure(self, rank: int, status: int, world: Path) -> str:
        """Why a rank failed, and what was expected."""
        lines = Path(f"{world}.{rank}.error").read_text(errors="replace").split("\n")
        told = [line.removeprefix("rehearsal: ") for line in lines if line.strip()]
        mine = [line.removeprefix("rehearsal: ") for line in lines if line.startswith("rehearsal: ")]
        if mine:
            expected = "--args with which it computes" if "MPI_Abort" in mine[0] else "a program without it"
            shown = f" ({told[0]})" if told[0] != mine[0] else ""
            return f"{mine[0]}{shown}; expected {expected}"
        if not self._begun(rank, world):
            shown = f" ({told[-1]})" if told else ""
            return f"rank {rank} ended before MPI_Init, with exit status {status}{shown}; expected --args"
        shown = f": {told[-1]}" if told else ""
        return f"rank {rank} ended with exit status {status}{shown}; expected --args with which it computes"

    def _begun(self, rank: int, world: Path) -> bool:
        log = Path(f"{world}.{rank}")
        return not log.exists() or bool(log.read_bytes()[:8].strip(b"\0"))

    def _log(self, rank: int, world: Path) -> Rows:
        if not self._begun(rank, world):
            raise InputError(f"{self.binary}: rank {rank} ended before MPI_Init; expected --args")
        return np.frombuffer(Path(f"{world}.{rank}").read_bytes()[8:], ROW)


def _library(folder: Path, binary: Path) -> Path:
    """The compiled library; calls that it does not know end the rehearsal. Raises InputError."""
    wanted = {name for name in loaded(binary) if name.startswith("MPI_")}
    if not check(binary) or not wanted:
        raise InputError(
            f"{binary} cannot be rehearsed; expected an x86-64 executable that loads MPI as a shared "
            "library, or --static"
        )
    text = SOURCE.read_text(encoding="utf-8")
    unknown = wanted - set(re.findall(r"^\w+ (MPI_\w+)\(", text, re.MULTILINE))
    stubs = (f'void {n}(void){{ fail("{n} cannot be rehearsed", "", 3); }}\n' for n in sorted(unknown))
    library = folder / "rehearse.so"
    compile_c(text + "".join(stubs), library)
    return library


def _program(rows: Rows, factor: float) -> Program:
    """The events of a rank."""
    found: list[Event] = []
    pending = False
    for seconds, _, m, kind, peer, tag, blocking in rows.tolist():
        if seconds > 0:
            found.append(Compute(COMPUTE, seconds * factor))
        if kind == SEND:
            found.append(Send(peer, m, MESSAGE, tag, blocking=bool(blocking)))
        elif kind == RECEIVE:
            found.append(Receive(peer, m, MESSAGE, tag, blocking=bool(blocking)))
        elif kind != WAIT:
            found.append(Collective(KINDS[tag], m, MESSAGE, peer))
        elif pending:
            found.append(Wait(MESSAGE))
        pending = (pending or not blocking) and kind != WAIT
    return tuple(found)
