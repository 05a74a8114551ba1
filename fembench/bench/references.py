"""Energies and fingerprints that come with fembench, so that a first run has a reference.

references.json is written by scripts/make_references.py: a direct solve, independent of the solver that
is timed, for the small presets; CG to 1e-13 for the larger ones; and, for some numbers of iterations,
what CG has reached after them, element by element. The key is the content of the mesh and of the problem,
and the fixed work, so a changed preset has no reference.
"""

import hashlib
from functools import cache
from pathlib import Path

import msgspec

from fembench.fem.problem import ProblemSpec, resolved
from fembench.records.case import Case
from fembench.records.record import Reference

FILE = Path(__file__).with_name("references.json")


def key_of(mesh_hash: str, spec: ProblemSpec, iterations: int = 0, precond: str = "none") -> str:
    """The key of a reference: of the solution, or of fixed work, whose result depends on the method."""
    problem = msgspec.json.encode(resolved(spec) | {"name": ""}, order="sorted")  # independent of its name
    work = f"{iterations} {precond}" if iterations else ""
    return hashlib.sha256(mesh_hash.encode() + problem + work.encode()).hexdigest()[:32]


def shipped(case: Case, mesh_hash: str, spec: ProblemSpec) -> Reference | None:
    """The reference of a case; None if none comes with fembench."""
    if case.stop.iterations and case.method.petsc_options:
        return None  # they may choose another method
    return _table().get(key_of(mesh_hash, spec, case.stop.iterations, case.method.precond))


@cache
def _table() -> dict[str, Reference]:
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Reference]) if FILE.exists() else {}
