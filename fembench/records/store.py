"""Records on disk: results/<campaign>/{campaign.toml, runs/*.json, report/}."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from fembench.base.config import convert, json_tree, write_json
from fembench.base.errors import InputError
from fembench.records.record import SCHEMA, Failure, Record
from fembench.records.schema import of_schema
from fembench.records.shapes import check_shapes
from fembench.records.validity import judge


def save(item: Record | Failure, folder: Path) -> Path:
    """Write a record (or failure) under its id, whole or not at all; return the path."""
    suffix = ".json" if isinstance(item, Record) else ".failed.json"
    path = Path(folder) / f"{item.id}{suffix}"
    write_json(path, item)
    return path


def load(path: Path | str) -> Record:
    """The record in a file, judged by the rules as they are now.

    The verdict that the file holds is not believed: it may be older than the rules, or edited. Raises
    InputError for anything but a record.
    """
    record = written(path)
    return msgspec.structs.replace(record, verdict=judge(record))


def written(path: Path | str) -> Record:
    """The record in a file with the verdict that the file holds. Raises InputError as `load` does."""
    tree = json_tree(path)
    if isinstance(tree, dict) and "first" in tree:
        raise InputError(f"{path}: a measurement of nodes; `fembench nodes {path}` shows it")
    record = convert(of_schema(tree, "record", SCHEMA, str(path)), Record, where=str(path))
    check_shapes(record, str(path))
    return record


def load_failure(path: Path | str) -> Failure:
    """The failure in a file. Raises InputError for anything else."""
    return convert(of_schema(json_tree(path), "record", SCHEMA, str(path)), Failure, where=str(path))


def record_paths(folder: Path | str) -> list[Path]:
    """Record files of a campaign folder (or of its runs/ folder), by name."""
    root = Path(folder)
    runs = root / "runs" if (root / "runs").is_dir() else root
    return sorted(p for p in runs.glob("[!.]*.json") if not p.name.endswith(".failed.json"))


def load_all(folder: Path | str) -> list[Record]:
    """Every record of a campaign. Raises InputError if there is none."""
    if not Path(folder).is_dir():
        raise InputError(f"{folder}: no such folder; expected a campaign's results")
    records = [load(path) for path in record_paths(folder)]
    if not records:
        raise InputError(f"{folder}: no records found; expected runs/*.json")
    return records


def load_each(paths: Sequence[Path | str]) -> list[Record]:
    """The records in these files and campaign folders, each once. Raises InputError as `load` does."""
    found = [r for p in map(Path, paths) for r in (load_all(p) if p.is_dir() else [load(p)])]
    return list({(r.id, r.created): r for r in found}.values())


def failures(folder: Path | str) -> Iterator[Failure]:
    """Every run of a campaign that left no record, those without time included."""
    for path in sorted((Path(folder) / "runs").glob("[!.]*.failed.json")):
        yield load_failure(path)
