"""What each rank of a record did: cells, computing, communicating, waiting.

Computing is assembly and the compute phases of CG. A rank's own cost of communication
is packing, sending and unpacking messages. Waiting is the time in the waits and
all-reduces of CG. One set is one sample of all ranks at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.records.compare import ranks_in_words
from fembench.records.phases import ASSEMBLY, CG, COMPUTING, OWN_MESSAGES, WAITING
from fembench.records.record import Record, bytes_on_device
from fembench.records.times import times_of


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """Times of the sets of one record, or of several records of the same ranks."""

    hosts: tuple[str, ...]  # (P,)
    cells: F64  # (n_sets, P)
    compute: F64  # (n_sets, P) seconds
    messages: F64  # (n_sets, P) seconds of sending and unpacking
    waiting: F64  # (n_sets, P) seconds
    total: F64  # (n_sets,) seconds of assembly and CG: the slowest rank's

    @property
    def cost(self) -> F64:
        """(n_sets, P) seconds of computing per cell."""
        return self.compute / self.cells


def observe(record: Record) -> Observation:
    """The timed sets of a record. Raises InputError if there are none."""
    times = times_of(record)
    if not len(times.timed):
        raise InputError(f"{record.id}: no timed sets; expected at least one that is not a warm-up")
    return Observation(
        hosts=record.environment.host_of_rank,
        cells=np.broadcast_to(np.asarray(record.partition.cells, float), times.walls.shape),
        compute=times.seconds(*COMPUTING),
        messages=times.seconds(*OWN_MESSAGES),
        waiting=times.seconds(*WAITING),
        total=times.slowest(ASSEMBLY, CG),
    )


def owners_of(record: Record) -> tuple[str, ...]:
    """For each rank what could be left out: its host, or the rank if all are on one."""
    hosts = record.environment.host_of_rank
    if len(set(hosts)) > 1:
        return hosts
    return tuple(f"rank {rank}" for rank in range(len(hosts)))


def room_on_devices(record: Record) -> F64:
    """(P,) cells for which each rank's device has memory; inf for ranks on cores."""
    parts = record.partition
    devices = record.environment.devices
    needed = zip(record.solve.matrix_bytes, parts.dofs, parts.cells)
    each = [bytes_on_device(matrix, dofs) / cells for matrix, dofs, cells in needed]
    return np.array([device.room for device in devices]) / each if devices else np.full(len(each), np.inf)


def check_ranks(records: Sequence[Record]) -> None:
    """Raises InputError for runs on different numbers of ranks."""
    first = records[0]
    for record in records:
        ranks = record.case.placement.ranks
        if ranks != first.case.placement.ranks:
            counts = f"{ranks_in_words(ranks)}, {first.id} on {first.case.placement.ranks}"
            raise InputError(
                f"{record.id} ran on {counts}: choose one number of ranks (--ranks, or runs.where)"
            )


def pooled(records: Sequence[Record]) -> Observation:
    """The sets of several records of the same ranks on the same hosts, one after another."""
    check_ranks(records)
    seen = [observe(record) for record in records]
    for record, one in zip(records, seen):
        if one.hosts != seen[0].hosts:
            other = f"{record.id} ran on other hosts than {records[0].id}"
            raise InputError(f"{other}; only runs on the same hosts can be pooled")
    names = ("cells", "compute", "messages", "waiting", "total")
    joined = (np.concatenate([getattr(o, name) for o in seen]) for name in names)
    return Observation(seen[0].hosts, *joined)


def run_seconds(records: Sequence[Record]) -> list[float]:
    """The time of the median set of each run, in seconds, on the slowest rank."""
    return [float(np.median(observe(record).total)) for record in records]
