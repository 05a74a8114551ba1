"""Exports: VTU for ParaView, CSV of all times.

Fields: the solution of a run, as stored in its fields file."""

import csv
import dataclasses
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from fembench.base.arrays import F64, I32
from fembench.base.errors import InputError
from fembench.base.tables import csv_cell
from fembench.records.case import FIELDS
from fembench.records.phases import NAMES
from fembench.records.record import Record
from fembench.records.times import times_of


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Fields:
    """Mesh and solution of one run, gathered from all ranks."""

    x: F64  # (n_nodes, 3)
    cells: I32  # (n_cells, nodes of the element)
    element: str
    u: F64  # (n_nodes, 3) displacement, metre
    von_mises: F64  # (n_cells,) pascal
    part: I32  # (n_cells,)


def fields_path(folder: Path, record_id: str) -> Path:
    """The path of a run's fields file, whether or not it exists."""
    runs = folder / "runs" if (folder / "runs").is_dir() else folder
    return runs / f"{record_id}.fields.npz"


def read_fields(path: Path) -> Fields:
    """The fields in a file. Raises InputError for anything else."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = {f.name: arrays[f.name] for f in dataclasses.fields(Fields)}
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path}: not a file of fields: {error}") from error
    return Fields(**{**found, "element": str(found["element"])})


MEASURED = ("record", "verdict", "kind", "set", "rank", "host", "phase", "seconds", "count")
NAMING = ("mesh", "storage", "ranks")  # fields of a case that are always written
# of every measured time: the fields of its case, then what was measured
COLUMNS = (*(f"case_{name}" if name in MEASURED else name for name in FIELDS), *MEASURED)


def write_vtu(fields: Fields, path: Path) -> None:
    """Displacement, von Mises stress and part of one run (open it in ParaView)."""
    from fembench.mesh.io import write
    from fembench.mesh.mesh import Mesh

    mesh = Mesh.create(fields.x, fields.cells, fields.element, path.stem)
    write(
        mesh,
        path,
        point_data={"displacement": fields.u},
        cell_data={"von_mises": fields.von_mises, "part": fields.part},
    )


def write_everything(records: Sequence[Record], path: Path, *, brief: bool = False) -> None:
    """Every measured time, one row each: case, set, rank, host, phase, seconds, count.

    `brief`: without fields that all cases share, but for those that name a result, and
    without records whose times are packed: rows take a hundred times the room.
    """
    cases = [record.case.flat() for record in records]
    shared = {name for name in FIELDS if len({case[name] for case in cases}) < 2} if brief else set[str]()
    kept = {name: head for name, head in zip(FIELDS, COLUMNS) if name in NAMING or name not in shared}
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow((*kept.values(), *MEASURED))
        for record, case in zip(records, cases):
            if brief and times_of(record).large:
                continue
            same = [*map(csv_cell, (*(case[name] for name in kept), record.id)), record.verdict.status]
            writer.writerows((*same, *row) for row in samples(record, csv_cell))


def samples(
    record: Record, cell: Callable[[str], object] = str
) -> Iterator[tuple[str, int | None, int, object, str, float, int | None]]:
    """Rows of kind, set, rank, host, phase, seconds, count, for phases that occurred.

    `cell`: what a row has of the name of a host.
    """
    times = times_of(record)
    sets = list(
        zip(times.warmups, times.all_sets.tolist(), times.all_counts.tolist(), times.all_walls.tolist())
    )
    hosts = map(cell, record.environment.host_of_rank)
    totals = zip(hosts, times.program.tolist(), times.once.tolist())
    for rank, (host, total, once) in enumerate(totals):
        for phase, seconds in zip(NAMES, once):
            if seconds:
                yield "setup", None, rank, host, phase, seconds, None
        yield "run", None, rank, host, "total", total, None
        for k, (warmup, by_rank, counts, walls) in enumerate(sets):
            kind = "warmup" if warmup else "timed"
            for phase, seconds, count in zip(NAMES, by_rank[rank], counts[rank]):
                if count:
                    yield kind, k, rank, host, phase, seconds, count
            yield kind, k, rank, host, "total", walls[rank], None
