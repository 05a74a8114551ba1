"""The reference of a run that has no other: its own system, solved once more with another storage.

Element by element, nothing is assembled, so neither the matrix nor its product is shared with the run
that was timed, and little memory is needed. The parts are those of the run: the partition itself is
tested by comparing with the one-rank run only.
"""

from fembench.bench.fingerprint import fingerprint
from fembench.bench.measure import control_of
from fembench.bench.prepare import Prepared
from fembench.bench.verify import Solved
from fembench.methods.lookup import names, preconds
from fembench.records.case import Case
from fembench.records.case_fields import CaseMethod
from fembench.records.record import Reference
from fembench.solve.from_names import build_solver
from fembench.timing.tracer import NullTracer

BY_ELEMENTS, ASSEMBLED = "ebe", "sym"


def solved_again(case: Case, prepared: Prepared) -> Reference | None:
    """The reference, at full speed and outside of all timings; None if no other method fits. Collective."""
    method = other_method(case.method)
    if method is None:
        return None
    sub, interface = prepared.sub, prepared.interface
    solver = build_solver(
        method, sub, interface, prepared.spec.material, NullTracer(), overlap=case.method.overlap
    )
    result = solver.solve(prepared.rhs, control_of(case, prepared.mesh.n_equations))
    if not result.converged and not case.stop.iterations:
        return None
    solved = Solved(
        sub, interface, solver.operator, prepared.spec, prepared.extent, prepared.load, prepared.rhs, result.x
    )
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
