"""Whether the answer of a run is right: the rules A1 to A5.

The residual, the operator, and the energy and solution of a reference decide. The
number of iterations is shown and decides nothing: rounding changes it where the system
is badly conditioned, or the tolerance is at rounding.
"""

from collections.abc import Iterator
from math import hypot, isfinite, nan, sqrt

import numpy as np

from fembench.methods.lookup import names, precond_of, preconds
from fembench.records.case import Case
from fembench.records.case_fields import CaseMethod
from fembench.records.record import Record, Reference
from fembench.records.verdict import Rule

EPS = float(np.finfo(float).eps)
GROWTH = 1e3  # largest residual of fixed work, over the load (docs/decisions/0013)
NO_REFERENCE = (
    "needs a one-rank record of the same mesh, problem and work, in the results folder or from --reference"
)
OTHER_WORK = "fewer or more --iterations, or a --tolerance"
ROUNDING = f"rounding decides the result after so many iterations: ask for {OTHER_WORK}"
NO_LOAD = "the load is zero, or too small for the tolerance or for floating-point numbers: use a larger one"
DIVERGED = "the solve diverged: is every part of the mesh restrained?"


def at_most(id: str, name: str, value: float, limit: float, note: str = "", remedy: str = "") -> Rule:
    """A rule with an upper limit, which nan does not meet; the remedy is for one that is not met."""
    ok = bool(isfinite(value) and value <= limit)
    note = note if ok else "; ".join(filter(None, [note, remedy]))
    return Rule(id=id, ok=ok, value=f"{name} = {value:.3g}", threshold=f"<= {limit:.3g}", note=note)


def rounding(record: Record) -> float:
    """The relative residual that rounding alone may leave."""
    return 1e3 * EPS * max(1.0, sqrt(record.mesh.n_equations))


def relative_recurrence(record: Record) -> float:
    """The last residual of the recurrence, relative to the load."""
    return _relative(record, record.solve.residuals[-1] if record.solve.residuals else float("nan"))


def answer_rules(record: Record) -> Iterator[Rule]:
    """A1 to A5."""
    v = record.verification
    yield from _fixed_work(record) if record.case.stop.iterations else _to_a_tolerance(record)
    if not v.solution_norm > 0:
        yield Rule(id="A1", ok=False, value=f"|u| = {v.solution_norm:.3g}", threshold="> 0", note=NO_LOAD)
    yield at_most("A2", "|x'Ay - y'Ax| / (|x||Ay| + |y||Ax|)", v.symmetry, 100 * EPS)
    yield Rule(id="A3", ok=v.positive > 0, value=f"x'Ax / (|x||Ax|) = {v.positive:.3g}", threshold="> 0")
    yield at_most("A3", "rigid modes |A r| / (|A||r|)", v.rigid_body, 1e-12)
    yield Rule(
        id="A5",
        ok=v.copies_identical,
        value="shared copies " + ("bit-identical" if v.copies_identical else "differ"),
        threshold="bit-identical on all sharers",
    )
    yield from _against_reference(record)


def _relative(record: Record, residual: float) -> float:
    f = record.verification.rhs_norm
    return residual / f if f else residual


def _fixed_work(record: Record) -> Iterator[Rule]:
    """A1: the residual is that of the recurrence, and sane: a diverged run agrees, too."""
    found = _relative(record, record.verification.true_residual)
    limit = 10 * relative_recurrence(record) + rounding(record)
    yield at_most("A1", "|f - A u| / |f|", found, limit, "fixed work: 10 x its recurrence")
    sane = at_most("A1", "|f - A u| / |f|", found, GROWTH, DIVERGED)
    if not sane.ok:
        yield sane


def _to_a_tolerance(record: Record) -> Iterator[Rule]:
    solve = record.solve
    found = _relative(record, record.verification.true_residual)
    limit = 10 * _relative(record, solve.target) + rounding(record)
    yield Rule(
        id="A1",
        ok=solve.converged and isfinite(found) and found <= limit,
        value=f"|f - A u| / |f| = {found:.3g}" + ("" if solve.converged else ", not converged"),
        threshold=f"<= {limit:.3g}",
        note="" if solve.converged else "allow more --max-iterations, or use a stronger --precond",
    )


def _against_reference(record: Record) -> Iterator[Rule]:
    """A4, A5: energy and solution against the one-rank run of that mesh and problem.

    Another storage on the same parts says nothing about partitions: both are then A4.
    """
    reference, v = record.reference, record.verification
    if reference is None:
        yield Rule(
            id="A4",
            ok=None,
            value="no reference",
            threshold="strain energy of the one-rank run",
            note=ROUNDING if rounding_decides(record) else NO_REFERENCE,
        )
        return
    of = f"reference: {reference.source}"
    remedy = _remedy(record.case)
    off = abs(v.energy - reference.energy) / abs(reference.energy) if reference.energy else abs(v.energy)
    asked = record.solve.target / v.rhs_norm if v.rhs_norm else 0.0  # relative tolerance
    yield at_most("A4", "strain energy, relative difference", off, max(1e-8, asked), of, remedy)
    difference = fingerprint_difference(v.fingerprint, reference.fingerprint, reference.solution_norm)
    id, name = ("A4", "|u - u_ref| / |u_ref|") if reference.same_parts else ("A5", "|u_P - u_1| / |u_1|")
    yield at_most(id, name, difference, max(100 * asked, 1e-9), of, remedy)
    if reference.iterations:
        yield _iterations(record, reference, id)


def rounding_decides(record: Record) -> bool:
    """Whether the run found that any two storages disagree after its fixed work.

    It then has no reference, although it could solve its system once more.
    """
    return bool(record.case.stop.iterations and not record.reference and has_twin(record.case.method))


def has_twin(method: CaseMethod) -> bool:
    """Whether CG of fembench solves the same system in the same way, with another storage."""
    return not method.petsc_options and method.precond in names(preconds("own"))


def _remedy(case: Case) -> str:
    """What to change if the result is not that of the reference."""
    other = OTHER_WORK if case.stop.iterations else "a lower --tolerance"
    return f"try {other}; if it still differs, the result is wrong: report it"


def _iterations(record: Record, reference: Reference, id: str) -> Rule:
    """The iterations beside those of the reference; met by any number."""
    where = "of the reference" if reference.same_parts else "on one rank"
    depends = _built_from_parts(record.case) and not reference.same_parts
    return Rule(
        id=id,
        ok=True,
        value=f"iterations: {record.solve.iterations}, {where} {reference.iterations}",
        threshold="any: M depends on the partition" if depends else "any: energy and solution decide",
        note=f"reference: {reference.source}",
    )


def _built_from_parts(case: Case) -> bool:
    """Whether the preconditioner depends on the partition, and so on the number of ranks."""
    return precond_of(case.method.precond).uses_parts or "-pc_type" in case.method.petsc_options.split()


def fingerprint_difference(a: tuple[float, ...], b: tuple[float, ...], norm: float) -> float:
    """|u_a - u_b|_2 / |u|_2, estimated as the rms of seeded random projections."""
    if len(a) != len(b):
        return float("nan")
    differences = [x - y for x, y in zip(a, b)]
    if not norm:
        return max(map(abs, differences), default=0.0)
    return hypot(*differences) / (sqrt(len(differences)) * norm) if differences else nan
