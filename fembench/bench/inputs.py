"""What the inputs of a case hold now, and whether a record was made of the same.

A case names its mesh and its problem; a record holds the hash of the one and all of the other.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fembench.base.config import convert
from fembench.base.errors import InputError
from fembench.fem.presets import PRESETS
from fembench.fem.problem import ProblemSpec, load_problem
from fembench.mesh.presets import box_named, resolve
from fembench.records.case import Case
from fembench.records.record import Record

Stamp = tuple[str, int, int, int]  # of a file: path, time of change, size, inode


class Inputs:
    """Meshes and problems as their files are; a file is read once as long as it does not change."""

    def __init__(self) -> None:
        self._hashes: dict[Stamp, str] = {}
        self._problems: dict[Stamp, ProblemSpec] = {}

    def mesh_hash(self, mesh: str) -> str:
        """The hash of the mesh in a file, or of one that is made. Raises InputError."""
        stamp = stamp_of(mesh)
        if stamp is None:
            return resolve(mesh).hash
        if stamp not in self._hashes:
            self._hashes[stamp] = resolve(mesh).hash
        return self._hashes[stamp]

    def problem(self, name: str) -> ProblemSpec:
        """The problem of that name, or in that file. Raises InputError."""
        stamp = stamp_of(name)
        if stamp is None:
            return load_problem(name)
        if stamp not in self._problems:
            self._problems[stamp] = load_problem(name)
        return self._problems[stamp]

    def same_mesh(self, case: Case, record: Record) -> bool:
        """Whether the case's mesh is that of the record. Boxes are compared by what they are made from."""
        mine, theirs = box_named(case.question.mesh), box_named(record.case.question.mesh)
        if mine is not None and theirs is not None:
            return (mine.cells, mine.element, mine.lengths) == (theirs.cells, theirs.element, theirs.lengths)
        return self.mesh_hash(case.question.mesh) == record.mesh.hash

    def same_problem(self, case: Case, record: Record) -> bool:
        """Whether the case's problem is that of the record."""
        return self.problem(case.question.problem) == problem_of(record.problem)

    def changed(self, record: Record) -> str:
        """The input that is not what the record was made from: 'mesh part.msh', 'problem p.toml', or ''.

        A file that is gone has not been edited; see `gone`. Raises InputError for one that cannot be read.
        """
        case = record.case
        checks = (
            ("problem", case.question.problem, self.same_problem),
            ("mesh", case.question.mesh, self.same_mesh),
        )
        return next(
            (f"{kind} {name}" for kind, name, same in checks if _edited(kind, name, same, record)), ""
        )


def gone(case: Case) -> list[str]:
    """Files that the case names and that are not there any more."""
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
    """What tells one state of a file from another; None where there is no such file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return str(path), found.st_mtime_ns, found.st_size, found.st_ino


def problem_of(tree: Mapping[str, Any]) -> ProblemSpec | None:
    """The problem that a record holds, what later versions added at its default; None where it is none."""
    try:
        material = {k: v for k, v in dict(tree["material"]).items() if k not in ("lam", "mu")}
        return convert({**tree, "material": material}, ProblemSpec, where="record")
    except (InputError, KeyError, TypeError, ValueError):
        return None
