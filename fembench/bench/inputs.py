"""The present content of a case's inputs, and whether a record was made from the same.

A case names its mesh and its problem; a record holds the mesh's
hash and the whole problem.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from fembench.base.config import convert
from fembench.base.errors import InputError
from fembench.fem.problem import PRESETS, ProblemSpec, load_problem
from fembench.mesh.presets import box_named, hash_of
from fembench.records.case import Case
from fembench.records.record import Record

T = TypeVar("T")
Stamp = tuple[str, int, int, int]  # of a file: path, time of change, size, inode


class Inputs:
    """Meshes and problems as in their files; a file is read again only if it changes."""

    def __init__(self) -> None:
        self._hashes: dict[Stamp, str] = {}
        self._problems: dict[Stamp, ProblemSpec] = {}

    def mesh_hash(self, mesh: str) -> str:
        """The hash of the mesh, read from its file or generated. Raises InputError."""
        return _kept(self._hashes, mesh, hash_of)

    def problem(self, name: str) -> ProblemSpec:
        """The problem of this name, or in this file. Raises InputError."""
        return _kept(self._problems, name, load_problem)

    def same_mesh(self, case: Case, record: Record) -> bool:
        """Whether the case's mesh is that of the record; boxes by their parameters."""
        mine = box_named(case.question.mesh)
        theirs = box_named(record.case.question.mesh)
        if mine is not None and theirs is not None:
            return (mine.cells, mine.element, mine.lengths) == (theirs.cells, theirs.element, theirs.lengths)
        return self.mesh_hash(case.question.mesh) == record.mesh.hash

    def same_problem(self, case: Case, record: Record) -> bool:
        """Whether the case's problem is that of the record."""
        return self.problem(case.question.problem) == problem_of(record.problem)

    def changed(self, record: Record) -> str:
        """The input that differs from the record's: 'mesh part.msh', 'problem p.toml', or ''.

        A missing file has not changed (see `gone`). Raises
        InputError for an unreadable one.
        """
        case = record.case
        checks = (
            ("problem", case.question.problem, self.same_problem),
            ("mesh", case.question.mesh, self.same_mesh),
        )
        return next(
            (f"{kind} {name}" for kind, name, same in checks if _edited(kind, name, same, record)), ""
        )


def _kept(known: dict[Stamp, T], name: str, read: Callable[[str], T]) -> T:
    """read(name); of a file that has not changed, as it was read before."""
    stamp = stamp_of(name)
    if stamp is None:
        return read(name)
    if stamp not in known:
        known[stamp] = read(name)
    return known[stamp]


def gone(case: Case) -> list[str]:
    """Files named by the case that no longer exist."""
    return [
        name
        for kind, name in (("problem", case.question.problem), ("mesh", case.question.mesh))
        if _is_gone(kind, name)
    ]


def _edited(kind: str, name: str, same: Callable[[Case, Record], bool], record: Record) -> bool:
    return not _is_gone(kind, name) and not same(record.case, record)


def _is_gone(kind: str, name: str) -> bool:
    known = name in PRESETS if kind == "problem" else box_named(name) is not None
    return not known and not Path(name).exists()


def stamp_of(path: Path | str) -> Stamp | None:
    """A value that changes when the file does; None if there is no such file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return str(path), found.st_mtime_ns, found.st_size, found.st_ino


def problem_of(tree: Mapping[str, Any]) -> ProblemSpec | None:
    """The problem in a record, later fields at their defaults; None if there is none."""
    try:
        material = {k: v for k, v in dict(tree["material"]).items() if k not in ("lam", "mu")}
        return convert({**tree, "material": material}, ProblemSpec, where="record")
    except (InputError, KeyError, TypeError, ValueError):
        return None
