"""Times of single operations by type, and of messages to rank 0 (Herai 2005, 4.2).

Every rank repeats chains of one operation (kernels/operations.c) at the same time as
all others, as in a run. Then rank 0 exchanges messages with one rank after the other. A
round yields one sample of everything.
"""

import time
from collections.abc import Sequence

from fembench.characterize.speeds import doze
from fembench.errors import InputError
from fembench.host.others import OthersShare, others_meter
from fembench.host.provenance import host_names
from fembench.kernels.backend import kernels
from fembench.launch.job import RankProgram, Tell
from fembench.ranks.comm import Comm
from fembench_studies.pamela.operations_job import OperationsFound, OperationsJob
from fembench_studies.programs.round_trips import BySize, half_round_trips

SECONDS = 0.01  # per sample of an operation
CHAIN = 16  # operations per turn of a kernel
TRIAL = 200  # turns that show how long one takes
SIZES = (64, 4096, 65536, 524288)  # bytes
IN_A_ROW = 5  # messages per sample
IDLE = 10.0  # per cent of the hosts' CPU time that other processes may use while a host counts as idle
PAUSE = 1.0  # seconds before a disturbed round is repeated


def operations(comm: Comm, job: OperationsJob, tell: Tell) -> OperationsFound | None:
    """The samples of all ranks on rank 0, None elsewhere. Collective."""
    begin = time.monotonic()
    turns = {name: turns_of(name) for name in kernels.OPERATIONS}
    samples: dict[str, list[float]] = {name: [] for name in turns}
    sent: BySize = {n_bytes: [] for n_bytes in SIZES}
    kept = discarded = 0
    while kept < job.rounds and not comm.bcast(kept + discarded and time.monotonic() - begin > job.patience):
        others = others_meter(comm)
        one, messages = _round(comm, turns)
        if job.idle and disturbed(comm.allgather(others())):
            discarded += 1
            doze(comm, PAUSE)
            continue
        kept += 1
        for name, seconds in one.items():
            samples[name].append(seconds)
        for n_bytes, taken in messages.items():
            sent[n_bytes] += taken
        if comm.rank == 0:
            tell(f"{kept} of {job.rounds} rounds")
    names = host_names(comm)
    place = names[: comm.rank].count(names[comm.rank])
    alone = names.count(names[comm.rank]) == 1
    rows = comm.gather((names[comm.rank] if alone else f"{names[comm.rank]}/{place}", samples, sent))
    if rows is None:
        return None
    return OperationsFound(
        machines=tuple(row[0] for row in rows),
        operations={name: tuple(tuple(row[1][name]) for row in rows) for name in turns},
        messages={n_bytes: tuple(tuple(row[2][n_bytes]) for row in rows) for n_bytes in SIZES},
        discarded=discarded,
        synthetic="",
    )


def disturbed(shares: Sequence[OthersShare]) -> bool:
    """Whether other processes used one of the hosts. Raises InputError if the
    system does not report it."""
    if any(share.others_percent < 0 for share in shares):
        raise InputError("idle hosts: the system does not report the CPU time that other processes use")
    return any(share.others_percent - share.others_resolution > IDLE for share in shares)


def _round(comm: Comm, turns: dict[str, int]) -> tuple[dict[str, float], BySize]:
    """One sample of each operation and message on this rank. Collective."""
    doze(comm, 0.0)
    one = {name: seconds_of(name, count) for name, count in turns.items()}
    messages = half_round_trips(comm, lambda: doze(comm, 0.0), SIZES, samples=1, in_a_row=IN_A_ROW)
    doze(comm, 0.0)
    return one, messages


def turns_of(name: str) -> int:
    """Turns of a kernel that take about SECONDS."""
    return max(round(SECONDS / (CHAIN * min(seconds_of(name, TRIAL) for _ in range(3)))), 1)


def seconds_of(name: str, turns: int) -> float:
    """Seconds per operation, the mean over 16 `turns` of them."""
    first = {"div": (46341.0, 2147483629.0), "mod": (46341.0, 100003.0)}.get(name[:3], (3.0, 5.0))
    begin = time.perf_counter()
    kernels.operation(name, turns, *first)
    return (time.perf_counter() - begin) / (CHAIN * turns)


PROGRAM = RankProgram(OperationsJob, lambda job: job.ranks, operations)
