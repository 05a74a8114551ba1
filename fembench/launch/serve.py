"""What the ranks of every job do: read it, run it, leave its result or why there is none."""

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from fembench.base.config import encode
from fembench.base.errors import FembenchError, InputError, UnsharedError, shown
from fembench.base.files import write_atomic
from fembench.base.units import plural
from fembench.host import cgroup, host
from fembench.host.provenance import Key, distinct_names, host_key
from fembench.launch.job import (
    APART,
    ERROR,
    JOB,
    PROGRESS,
    RESULT,
    STARTED,
    RankProgram,
    Started,
    StartedHost,
    StartedRank,
    Tell,
)
from fembench.launch.shared_page import Teller, page_in
from fembench.launch.witness import NO_LINE, RankLine, witness_in
from fembench.ranks.comm import Comm, abort, abort_on_exception, all_arrive, world

PATIENCE = 5.0  # seconds that a rank with an error waits for the others to have it, too
LONG = 600.0  # seconds that the others wait for rank 0 to write the result


def serve(program: RankProgram, folder: str, line: RankLine = NO_LINE) -> int:
    """Run the job.json in `folder`, which rank 0 sees; 0, or 2 if it failed. Collective.

    `line`: to the witness of the job, if this rank has one already.

    Rank 0 appends lines to progress.txt while it runs, shows its iterations on the page
    of the job, and leaves the result, or for a FembenchError an error.txt (a kind, then
    the message). Others are crashes and end the job.
    """
    comm = world()
    abort_on_exception(comm, line.say)
    return _serve(program, Path(folder), comm, line)


def _serve(program: RankProgram, folder: Path, comm: Comm, line: RankLine) -> int:
    text, at = comm.bcast((_job_text(folder, comm, line), witness_in(folder)) if comm.rank == 0 else None)
    _say_started(folder, comm)
    if line.rank != comm.rank:  # the folder is not shared, or the rank is another
        line.say_goodbye()
        line = RankLine(at, comm.rank)
        abort_on_exception(comm, line.say)

    tell: Tell = Teller(folder / PROGRESS, page_in(folder)) if comm.rank == 0 else lambda line: None
    try:
        job = msgspec.json.decode(text, type=program.job)
        _expect(comm, program.n_ranks(job))
        found = program.run(comm, job, tell)
        if found is not None:
            write_atomic(folder / RESULT, encode(found))
    except (FembenchError, MemoryError) as raised:
        error = raised if isinstance(raised, FembenchError) else _too_large(raised)
        if not all_arrive(comm, PATIENCE):  # raised on some ranks only
            abort(comm, error, line.say)
        line.say_goodbye()
        if comm.rank == 0:
            write_atomic(folder / ERROR, f"{_kind(error)}\n{error}")
        all_arrive(comm, PATIENCE)  # or a launcher may end the job early
        return 2
    line.say_goodbye()  # before any rank may leave
    all_arrive(comm, LONG)
    return 0


def _too_large(raised: MemoryError) -> InputError:
    """What a rank says whose arrays do not fit."""
    said = f" ({shown(raised, 200)})" if str(raised) else ""
    return InputError(
        f"not enough memory on {platform.node()}{said}; expected a smaller mesh, more hosts, or a method "
        "that stores less"
    )


def _job_text(folder: Path, comm: Comm, line: RankLine) -> bytes:
    """The job. If this host does not see its folder, a line says so, and the job ends."""
    try:
        return (folder / JOB).read_bytes()
    except OSError as error:
        blind = UnsharedError(
            f"host {platform.node()} cannot read {folder.parent} ({error.strerror}): "
            "results need a folder that all hosts share; give another one"
        )
        abort(comm, blind, line.say)
        raise blind from None


def _say_started(folder: Path, comm: Comm) -> None:
    """Leave a file with host and process of each rank, and what slows them. Collective."""
    quota = cgroup.cpu_quota() or 0.0
    average = host.load_average()
    met = Met(host_key(), os.getpid(), host.host_cores(), quota, average, host.running())
    everyone = comm.gather(met)
    if everyone is not None:
        write_atomic(folder / STARTED, msgspec.json.encode(started(everyone)))


class Met(NamedTuple):
    """A rank when all have met."""

    host: Key
    process: int
    cores: int
    quota: float  # CPU seconds per second; 0: no limit
    load_average: float  # over the last minute, this job's last runs included
    running: int  # threads on its machine


def started(everyone: Sequence[Met]) -> Started:
    """Where these ranks are. A load counts if a machine runs more threads than ranks."""
    names = distinct_names([met.host for met in everyone])
    by_machine: dict[str, list[int]] = {}
    for met in everyone:
        by_machine.setdefault(met.host[1], []).append(met.running)
    hosts: dict[str, StartedHost] = {}
    for name, met in zip(names, everyone):
        running = by_machine[met.host[1]]
        load = met.load_average if min(running) > len(running) else 0.0
        hosts.setdefault(name, StartedHost(name, met.cores, met.quota, load))
    ranks = [StartedRank(name, met.process) for name, met in zip(names, everyone)]
    return Started(tuple(ranks), tuple(hosts.values()))


class WorldSizeError(InputError):
    """The launcher did not make one job of the ranks."""


def _kind(error: FembenchError) -> str:
    if isinstance(error, WorldSizeError):
        return APART
    return "input" if isinstance(error, InputError) else "failed"


def _expect(comm: Comm, ranks: int) -> None:
    """Raises WorldSizeError if the launcher started more or fewer ranks than asked."""
    if comm.size == 1 < ranks:
        raise WorldSizeError(f"the launcher started {ranks} jobs of one rank")
    if comm.size != ranks:
        raise WorldSizeError(f"{plural(ranks, 'rank')} requested, but the launcher started {comm.size}")
