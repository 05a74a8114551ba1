"""Energies and fingerprints that come with fembench, so that a first run has a reference.

references.json is written by scripts/make_references.py: a direct solve, independent of the solver that is
timed, for the small presets; CG to 1e-13 for the larger ones. The key is the content of the mesh and of
the problem, so a changed preset has no reference.
"""

import hashlib
from functools import cache
from pathlib import Path

import msgspec

from fembench.fem.problem import ProblemSpec, resolved
from fembench.records.case import Case
from fembench.records.record import Reference

FILE = Path(__file__).with_name("references.json")


def key_of(mesh_hash: str, spec: ProblemSpec) -> str:
    """The key of a reference."""
    problem = msgspec.json.encode(resolved(spec) | {"name": ""}, order="sorted")  # independent of its name
    return hashlib.sha256(mesh_hash.encode() + problem).hexdigest()[:32]


def shipped(case: Case, mesh_hash: str, spec: ProblemSpec) -> Reference | None:
    """The reference of a solved case; None for fixed work, whose result is not the solution."""
    return None if case.stop.iterations else _table().get(key_of(mesh_hash, spec))


@cache
def _table() -> dict[str, Reference]:
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Reference]) if FILE.exists() else {}
