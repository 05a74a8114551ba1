"""Records on disk: results/<campaign>/{campaign.toml, runs/*.json, report/}.

A record is read only if its arrays fit its ranks, phases and hosts. A glance at one reads
what a series of many runs needs, in a tenth of the time.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec

from fembench.base import plugins
from fembench.base.config import read_json, read_text, write_json
from fembench.base.errors import InputError
from fembench.base.units import few, plural
from fembench.records.case import Case
from fembench.records.compare import Question, question
from fembench.records.phases import ASSEMBLY, CG, NAMES
from fembench.records.record import NO_JOULES, SCHEMA, Environment, Failure, MeshFacts, Record
from fembench.records.schema import Packed, check_time, read
from fembench.records.validity import RULES, judge


def save(item: Record | Failure, folder: Path) -> Path:
    """Write a record (or failure) under its id, whole or not at all; return the path."""
    suffix = ".json" if isinstance(item, Record) else ".failed.json"
    path = Path(folder) / f"{item.id}{suffix}"
    write_json(path, item)
    return path


def load(path: Path | str) -> Record:
    """The record in a file, judged by the rules as they are now.

    The verdict that the file holds is not believed: it may be older than the rules, or
    edited. Raises InputError for anything but a record.
    """
    record = written(path)
    return msgspec.structs.replace(record, verdict=judge(record))


def written(path: Path | str) -> Record:
    """The record with the verdict that its file holds. Raises InputError as `load` does."""
    text = read_text(path).encode()
    record: Record | None
    try:
        record = msgspec.json.decode(text, type=Record)
    except (msgspec.DecodeError, RecursionError):
        record = None
    if record is None or record.schema != SCHEMA:
        record = _explained(path)
    check_shapes(record, str(path))
    return record


def _explained(path: Path | str) -> Record:
    """The same, more slowly: raises InputError that says what is wrong."""
    tree = read_json(path, dict, "a record of fembench run")
    if "first" in tree:
        raise InputError(f"{path}: a measurement of nodes; `fembench nodes {path}` shows it")
    try:
        return read(path, Record, SCHEMA, "a record", has="sets", verb="run", tree=tree)
    except InputError as error:
        if line := _missing(tree):
            raise InputError(f"{path}: {line}") from error
        raise


def _missing(tree: dict[str, Any]) -> str:
    """A line on the package that brought a method of this record, if it is not installed."""
    environment = tree.get("environment")
    used = environment.get("brought") if isinstance(environment, dict) else None
    return plugins.missing({str(k): str(v) for k, v in used.items()}) if isinstance(used, dict) else ""


def load_failure(path: Path | str) -> Failure:
    """The failure in a file. Raises InputError for anything else."""
    return read(path, Failure, SCHEMA, "a failed run", has="exit_status", verb="run")


def record_paths(folder: Path | str) -> list[Path]:
    """Record files of a campaign folder (or of its runs/ folder), by name; no pipe, on which one waits."""
    root = Path(folder)
    runs = root / "runs" if (root / "runs").is_dir() else root
    files = (p for p in runs.glob("[!.]*.json") if not p.is_fifo())
    return sorted(p for p in files if not p.name.endswith(".failed.json"))


def run_paths(folder: Path) -> list[Path]:
    """The same of a campaign folder only: none of a folder without runs/."""
    return record_paths(folder) if (folder / "runs").is_dir() else []


def load_all(folder: Path | str) -> list[Record]:
    """Every record of a campaign, each once. Raises InputError if there is none."""
    if not Path(folder).is_dir():
        found = "a file" if Path(folder).exists() else "no such folder"
        raise InputError(f"{folder}: {found}; expected a folder of a campaign's results")
    records = distinct(load(path) for path in record_paths(folder))
    if not records:
        below = [str(p) for p in sorted(Path(folder).iterdir()) if run_paths(p)]
        there = f"; there are records in {few(below, 3)}" if below else ""
        raise InputError(f"{folder}: no records found; expected runs/*.json{there}")
    return records


def load_each(paths: Sequence[Path | str]) -> list[Record]:
    """The records in these files and folders, each once. Raises InputError as `load` does."""
    return distinct(r for p in map(Path, paths) for r in (load_all(p) if p.is_dir() else [load(p)]))


def distinct(records: Iterable[Record]) -> list[Record]:
    """Each run once: a copy of its file is no second run."""
    return list({(r.id, r.created): r for r in records}.values())


def failures(folder: Path | str) -> Iterator[Failure]:
    """Every run of a campaign that left no record, those without time included."""
    for path in sorted((Path(folder) / "runs").glob("[!.]*.failed.json")):
        yield load_failure(path)


class _SeenSet(msgspec.Struct, frozen=True):
    """A set, as far as a glance reads it."""

    warmup: bool
    seconds: tuple[tuple[float, ...], ...] | Packed


class _SeenVerdict(msgspec.Struct, frozen=True):
    status: str
    version: int = 0


class _Seen(msgspec.Struct, frozen=True):
    """What a glance reads of a file; what many runs share is decoded once."""

    schema: int
    id: str
    created: str
    case: msgspec.Raw
    environment: Environment
    mesh: MeshFacts
    problem: msgspec.Raw
    phases: tuple[str, ...]
    sets: tuple[_SeenSet, ...]
    verdict: _SeenVerdict


UNTIMED = f"no timed sets of {NAMES[CG]}; run the case again"


class Glance(NamedTuple):
    """A record, as far as a series of runs needs it."""

    id: str
    created: str
    case: Case
    asked: Question
    environment: Environment
    status: str  # of its verdict
    seconds: float  # of assembly and CG on the slowest rank, median over the timed sets


def glance(path: Path | str) -> Glance:
    """A record at a glance. Raises InputError for anything else.

    Its verdict is believed if it is by the rules as they are now; otherwise, the record
    is read and judged.
    """
    try:
        seen = msgspec.json.decode(Path(path).read_bytes(), type=_Seen)
        seconds = _seconds(seen)
        check_time(seen.created, f"{path}: created")
        case, asked = _asked(bytes(seen.case), seen.mesh.hash, bytes(seen.problem))
        e = seen.environment
        sound = all(0 <= i < len(e.hosts) for i in e.rank_host)
    except (OSError, ValueError, IndexError):  # not JSON, not a record, ragged
        load(path)  # says what is wrong
        raise InputError(f"{path}: {UNTIMED}") from None
    status = seen.verdict.status
    if not sound or seen.schema != SCHEMA or seen.verdict.version != RULES:
        status = load(path).verdict.status
    return Glance(seen.id, seen.created, case, asked, e, status, seconds)


@functools.lru_cache(maxsize=1024)
def _asked(case: bytes, mesh_hash: str, problem: bytes) -> tuple[Case, Question]:
    """A case and its question, from JSON. Raises ValueError."""
    found = msgspec.json.decode(case, type=Case)
    return found, question(found, mesh_hash, msgspec.json.decode(problem, type=dict[str, object]))


def glance_of(record: Record) -> Glance:
    """The same of a record that has been read. Raises InputError for one without timed sets of CG."""
    try:
        seconds = _seconds(record)
    except (ValueError, IndexError):
        raise InputError(f"{record.id}: {UNTIMED}") from None
    asked = question(record.case, record.mesh.hash, record.problem)
    status = record.verdict.status
    return Glance(record.id, record.created, record.case, asked, record.environment, status, seconds)


def _seconds(found: _Seen | Record) -> float:
    """Raises ValueError or IndexError for other phases, or arrays that do not fit them."""
    if found.phases[: CG + 1] != NAMES[: CG + 1]:
        raise ValueError("other phases")
    timed = [one.seconds for one in found.sets if not one.warmup]
    tables = (rows.numbers() if isinstance(rows, Packed) else rows for rows in timed)
    slowest = [max(row[ASSEMBLY] + row[CG] for row in rows) for rows in tables]  # numpy is slower here
    return float(median(slowest)) if slowest else 0.0


MOST = 1e30  # flops or bytes, also per second: more than any computer has
Rows = Sequence[Sequence[Any]]
BY_RANK = (  # arrays of the partition
    *("targets", "cells", "dofs", "blocks"),
    *("shared_dofs", "shared_dofs_all", "neighbours", "message_bytes"),
)


def check_shapes(record: Record, where: str) -> None:
    """Raises InputError for a record without sets, or arrays that do not fit them."""
    ranks = record.case.placement.ranks
    phases = len(record.phases)
    check_time(record.created, f"{where}: created")
    if not record.sets:
        raise InputError(f"{where}: sets = []: expected at least one set")
    if record.solve.iterations < 0:
        raise InputError(f"{where}: solve.iterations = {record.solve.iterations}: expected 0 or more")
    for name, amounts in _amounts(record):
        if not len(amounts) or min(amounts) <= 0:
            raise InputError(f"{where}: {name} = {list(amounts)}: expected numbers above 0")
    for name, counted in _counted(record):
        absurd = next((n for n in counted if not 0 <= n <= MOST), None)
        if absurd is not None:
            raise InputError(f"{where}: {name} = {absurd:g}: expected 0 to {MOST:g}")
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
    hosts = len(record.environment.hosts)
    for k, one in enumerate(record.sets):
        if one.joules and (len(one.joules) != hosts or not all(_is_energy(j) for j in one.joules)):
            expected = f"one number per host ({hosts}), 0 to {MOST:g} or {NO_JOULES:g}"
            raise InputError(f"{where}: sets[{k}].joules = {list(one.joules)}: expected {expected}")
    for name, numbers, limit in _numbers(record):
        beyond = next((n for n in numbers if not 0 <= n < limit), None)
        if beyond is not None:
            raise InputError(f"{where}: {name} {beyond}; expected 0 to {limit - 1}")
    for rank, (others, sizes) in enumerate(zip(record.partition.neighbours, record.partition.message_bytes)):
        if len(others) != len(sizes):
            counts = f"{plural(len(others), 'neighbour')} and {plural(len(sizes), 'message size')}"
            raise InputError(f"{where}: rank {rank} has {counts}; expected as many of each")


def _is_energy(joules: float) -> bool:
    return joules == NO_JOULES or 0 <= joules <= MOST


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


def _counted(record: Record) -> Iterator[tuple[str, Iterable[float]]]:
    """(name, numbers) of all counts and rates that are added up."""
    solve = record.solve
    for name in ("flops", "bytes", "matrix_bytes", "bandwidth"):
        yield f"solve.{name}", getattr(solve, name)
    yield "solve.triads", (rate for rank in solve.triads for rate in rank)
    yield "solve.state: speed", (reading.speed for reading in solve.state)


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
