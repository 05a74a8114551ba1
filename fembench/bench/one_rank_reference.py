"""The reference of a case: a run of the same question on one rank."""

import contextlib
from pathlib import Path

import msgspec

from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.bench.inputs import Inputs
from fembench.records.answer import rounding_decides
from fembench.records.case import Case, fields_of
from fembench.records.record import Record, Reference
from fembench.records.store import load

QUESTION = fields_of("question")  # fields that a run has in common with its one-rank reference


def question_of(case: Case) -> bytes:
    """The question of a case, without the method."""
    return msgspec.json.encode([case.flat()[name] for name in QUESTION])


def reference_of(record: Record) -> Reference | None:
    """The reference that other runs of the same question are compared with.

    None if rounding decides the result.
    """
    if rounding_decides(record):
        return None
    v = record.verification
    return Reference(
        source=record.id,
        energy=v.energy,
        iterations=record.solve.iterations,
        fingerprint=v.fingerprint,
        solution_norm=v.solution_norm,
    )


def reference_beside(case: Case, runs: Path) -> Reference | None:
    """The reference for a case from the newest one-rank run of its question in a folder.

    None if there is no such run, it is INVALID, rounding decides its result, or its mesh
    or problem file has changed since. Records that cannot be read are skipped.
    """
    one_rank = sorted(runs.glob("[!.]*-p1-*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in one_rank:
        with contextlib.suppress(InputError):
            if question_of(load(path).case) == question_of(case):
                return held_against(case, str(path))
    return None


def held_against(case: Case, path: Path | str) -> Reference | None:
    """The reference for a case, from a file; None if rounding decides its result.

    Raises InputError if it answers another question.
    """
    record, inputs = load(path), Inputs()
    where = f"reference {path}"
    if record.case.placement.ranks != 1 or record.verdict.status == "INVALID":
        found = f"{record.verdict.status}, {plural(record.case.placement.ranks, 'rank')}"
        raise InputError(f"{where}: {found}; expected a record of one rank that is not INVALID")
    if not inputs.same_mesh(case, record):
        other = f"mesh '{record.case.question.mesh}'"
        raise InputError(f"{where}: {other}; expected the mesh of the case, '{case.question.mesh}'")
    if not inputs.same_problem(case, record):
        other = f"problem '{record.case.question.problem}'"
        raise InputError(f"{where}: {other}; expected the problem of the case, '{case.question.problem}'")
    mine, theirs = case.flat(), record.case.flat()
    for name in QUESTION:
        if name not in ("mesh", "problem") and mine[name] != theirs[name]:
            raise InputError(f"{where}: {name} = {theirs[name]!r}; expected that of the case, {mine[name]!r}")
    return reference_of(record)
