"""The arrays of a record: one entry per rank and phase, and no rank, phase or host that does not exist."""

from collections.abc import Iterator, Sequence
from typing import Any

from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.records.packed import Packed
from fembench.records.record import Record

Rows = Sequence[Sequence[Any]]
BY_RANK = (  # arrays of the partition
    *("targets", "cells", "dofs", "blocks"),
    *("shared_dofs", "shared_dofs_all", "neighbours", "message_bytes"),
)


def check_shapes(record: Record, where: str) -> None:
    """Raises InputError for a record without sets, or whose arrays do not fit its ranks and phases."""
    ranks, phases = record.case.placement.ranks, len(record.phases)
    if not record.sets:
        raise InputError(f"{where}: sets = []: expected at least one set")
    if record.solve.iterations < 0:
        raise InputError(f"{where}: solve.iterations = {record.solve.iterations}: expected 0 or more")
    for name, amounts in _amounts(record):
        if not len(amounts) or min(amounts) <= 0:
            raise InputError(f"{where}: {name} = {list(amounts)}: expected numbers above 0")
    for name, rows in _by_rank(record):
        if len(rows) != ranks:
            raise InputError(
                f"{where}: {name} of {plural(len(rows), 'rank')}; expected {ranks}, as in its case"
            )
    for name, table in _by_phase(record):
        widths = table.shape[1:] if isinstance(table, Packed) else map(len, table)
        wrong = next((n for n in widths if n != phases), None)
        if wrong is not None:
            raise InputError(f"{where}: {name} of {plural(wrong, 'phase')}; expected {phases}")
    for name, numbers, limit in _numbers(record):
        beyond = next((n for n in numbers if not 0 <= n < limit), None)
        if beyond is not None:
            raise InputError(f"{where}: {name} {beyond}; expected 0 to {limit - 1}")
    for rank, (others, sizes) in enumerate(zip(record.partition.neighbours, record.partition.message_bytes)):
        if len(others) != len(sizes):
            counts = f"{plural(len(others), 'neighbour')} and {plural(len(sizes), 'message size')}"
            raise InputError(f"{where}: rank {rank} has {counts}; expected as many of each")


def _by_rank(record: Record) -> Iterator[tuple[str, Sequence[Any] | Packed]]:
    """(name, entries) of all arrays with one entry per rank."""
    part = record.partition
    yield "environment.rank_host", record.environment.rank_host
    yield "environment.affinity", record.environment.affinity
    for name in BY_RANK:
        yield f"partition.{name}", getattr(part, name)
    for name in ("flops", "bytes", "matrix_bytes"):
        yield f"solve.{name}", getattr(record.solve, name)
    for name in ("bandwidth", "triads"):
        if measured := getattr(record.solve, name):
            yield f"solve.{name}", measured
    for k, level in enumerate(record.solve.levels):
        for name in ("computing", "messages", "waiting"):
            yield f"solve.levels[{k}].{name}", getattr(level, name)
    yield "setup", record.setup
    yield "total", record.total
    for k, one in enumerate(record.sets):
        yield f"sets[{k}].seconds", one.seconds
        yield f"sets[{k}].counts", one.counts
        yield f"sets[{k}].total", one.total


def _amounts(record: Record) -> Iterator[tuple[str, Sequence[float]]]:
    """(name, numbers) of all amounts by which others are divided."""
    yield "mesh.n_equations", (record.mesh.n_equations,)
    yield "partition.targets", record.partition.targets
    yield "partition.cells, their sum", (sum(record.partition.cells),)
    yield "solve.bandwidth", record.solve.bandwidth or (1.0,)
    for rank, triads in enumerate(record.solve.triads):
        yield f"solve.triads[{rank}]", triads


def _by_phase(record: Record) -> Iterator[tuple[str, Rows | Packed]]:
    """(name, rows) of all arrays with one row per rank and one entry per phase."""
    yield "setup", record.setup
    for k, one in enumerate(record.sets):
        yield f"sets[{k}].seconds", one.seconds
        yield f"sets[{k}].counts", one.counts


def _numbers(record: Record) -> Iterator[tuple[str, Iterator[int], int]]:
    """(name, numbers, upper limit) of all indices; each must be below the limit."""
    ranks = record.case.placement.ranks
    yield "environment.rank_host: host", iter(record.environment.rank_host), len(record.environment.hosts)
    yield "partition.neighbours: rank", (q for row in record.partition.neighbours for q in row), ranks
    yield "events: rank", (e.rank for e in record.events), ranks
    yield "events: phase", (e.phase for e in record.events), len(record.phases)
