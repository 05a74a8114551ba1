"""Samples of single operations and of messages to rank 0: input and
output of a job of its own."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from fembench.characterize.jobs import PATIENCE, needs_two
from fembench.launch.line import job_line
from fembench.launch.run_job import measure


class OperationsJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of `fembench characterize --operations`."""

    ranks: int
    rounds: int  # samples of everything
    idle: bool  # only while no other process uses the hosts
    patience: float  # seconds after which no round begins


class OperationsFound(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Samples of single operations and messages. Each sample is the
    mean of many in succession."""

    machines: tuple[str, ...]  # [rank] its host, numbered where a host has several ranks
    operations: dict[str, tuple[tuple[float, ...], ...]]  # name -> [rank][sample] seconds
    messages: dict[int, tuple[tuple[float, ...], ...]]  # bytes -> [rank][sample] seconds to or from rank 0
    discarded: int  # rounds during which other processes used the hosts
    synthetic: str  # how heterogeneity is emulated around the job (rule E8)


def measure_operations(
    ranks: int,
    *,
    rounds: int,
    idle: bool = False,
    patience: float = PATIENCE / 2,
    hostfile: str = "",
    scratch: Path,
    tell: Callable[[str], None] = lambda text: None,
) -> OperationsFound:
    """`rounds` samples of each operation on each rank, and of messages to rank 0.
    `scratch`: a folder that rank 0's host can also access.

    With `idle`, rounds disturbed by other processes are repeated for `patience`
    seconds. There may be no samples then. Raises InputError, or RunFailedError if the
    job ended without a result.
    """
    needs_two(ranks)
    found = measure(
        "fembench_studies.pamela.operations_rank",
        OperationsJob(ranks=ranks, rounds=rounds, idle=idle, patience=patience),
        OperationsFound,
        job_line(ranks, hostfile),
        scratch=scratch,
        timeout=PATIENCE,
        tell=tell,
    )
    return msgspec.structs.replace(found, synthetic=os.environ.get("FEMBENCH_SYNTHETIC", ""))
