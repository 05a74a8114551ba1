"""The reference of a run that has no other: its own system, solved once more with another storage.

Element by element, nothing is assembled, so neither the matrix nor its product is shared with the run
that was timed, and little memory is needed. The parts are those of the run: the partition itself is
tested by comparing with the one-rank run only.

Fixed work may end where rounding decides the result: CG has lost the orthogonality of its directions, and
any two storages disagree. So fixed work is solved a third time, with 1.1 times the load. The solution is
linear in the load, but no rounding is the same. If both differ by more, there is no reference.
"""

import dataclasses

from fembench.bench.measure import control_of
from fembench.bench.prepare import Prepared
from fembench.bench.verify import Solved, fingerprint
from fembench.methods.lookup import names, preconds
from fembench.records.case import Case
from fembench.records.case_fields import CaseMethod
from fembench.records.record import Reference
from fembench.solve.from_names import build_solver
from fembench.timing.tracer import NullTracer

BY_ELEMENTS, ASSEMBLED = "ebe", "sym"
SCALE = 1.1  # of the load; not a power of two, which would round alike
SENSITIVE = 1e-10  # |u| by which rounding may change the solution; rule A5 allows 1e-9


def solved_again(case: Case, prepared: Prepared) -> Reference | None:
    """The reference, at full speed and outside of all timings; None if no other method fits. Collective."""
    method = other_method(case.method)
    if method is None:
        return None
    sub, interface = prepared.sub, prepared.interface
    solver = build_solver(method, sub, interface, prepared.lame, NullTracer(), overlap=case.method.overlap)
    control = control_of(case, prepared.mesh.n_equations)
    result = solver.solve(prepared.rhs, control)
    if not result.converged and not control.fixed:
        return None
    result = dataclasses.replace(result, x=result.x.copy())  # the solver's own vector is used again
    if control.fixed:
        scaled = solver.solve(SCALE * prepared.rhs, control).x
        off = interface.dot(scaled / SCALE - result.x, scaled / SCALE - result.x)
        if off > SENSITIVE**2 * interface.dot(result.x, result.x):
            return None
    solved = Solved(prepared, solver.operator, result.x)
    u, owned = solved.u, sub.owned_nodes
    return Reference(
        source=f"storage {method.storage}, in the same run",
        energy=0.5 * interface.total(float((u * solved.force(u)).sum())),
        iterations=result.iterations if case.method.solver == "own" else 0,
        fingerprint=fingerprint(interface.comm, sub.global_nodes[owned], u[owned]),
        solution_norm=interface.total(float((u[owned] ** 2).sum())) ** 0.5,
        same_parts=True,
    )


def other_method(method: CaseMethod) -> CaseMethod | None:
    """The method with another storage, and with CG of fembench in place of PETSc; None if there is none."""
    if method.petsc_options or method.precond not in names(preconds("own")):
        return None
    storage = ASSEMBLED if method.storage == BY_ELEMENTS else BY_ELEMENTS
    variant = method.variant if method.solver == "own" else "standard"
    return CaseMethod(
        storage=storage,
        precond=method.precond,
        variant=variant,
        overlap=method.overlap,
        exchange=method.exchange,
    )
