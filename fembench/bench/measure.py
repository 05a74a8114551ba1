"""The timed part of a run: sets of assembly and CG, warm-ups first.

Nothing is printed, gathered or verified between the first and the last set. The times kept are raw
ticks; they become seconds when the clock has its certificate.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fembench.bench.prepare import Prepared
from fembench.dist.comm import Comm
from fembench.records.case import Case
from fembench.solve.cg import CGResult, ConjugateGradients, Control
from fembench.solve.operators import Operator, build_operator
from fembench.solve.precond import make_preconditioner
from fembench.timing.phases import ASSEMBLY, CG, SYNC
from fembench.timing.tracer import TracerLike, span


@dataclass(frozen=True)
class SetTicks:
    """One set on one rank, in ticks."""

    warmup: bool
    ticks: NDArray[np.int64]  # (n_phases,)
    counts: NDArray[np.int64]  # (n_phases,)
    total: int
    iterations: int
    residual: float


@dataclass(frozen=True)
class Measured:
    """What the timed part leaves: the last set's operator and solution, and every set's times."""

    operator: Operator
    result: CGResult
    sets: list[SetTicks]


def control_of(case: Case, n_equations: int) -> Control:
    """The stopping rule that a case asks for."""
    return Control(
        tolerance=case.tolerance,
        relative=case.tolerance_kind == "relative",
        max_iterations=case.max_iterations or 10 * n_equations,
        fixed=case.iterations,
    )


def measure(comm: Comm, case: Case, prepared: Prepared, tracer: TracerLike) -> Measured:
    """Run the warm-ups and the timed sets. Collective."""
    control = control_of(case, prepared.mesh.n_equations)
    sets: list[SetTicks] = []
    while True:
        warmup = len(sets) < case.warmups
        tracer.reset(events=False)
        tracer.recording = case.trace_iterations > 0 and len(sets) == case.warmups
        _together(comm, tracer)
        begin = tracer.now()
        with span(tracer, ASSEMBLY):
            operator = _assemble(case, prepared)
            solver = _solver(case, prepared, operator, tracer)
        _together(comm, tracer)
        result = solver.solve(prepared.rhs, control, record=case.trace_iterations)
        total = tracer.now() - begin
        tracer.recording = False
        sets.append(
            SetTicks(warmup, tracer.ticks(), tracer.counts(), total, result.iterations, result.residuals[-1])
        )
        if not _more(comm, case, sets, tracer):
            return Measured(operator, result, sets)
        del operator, solver, result  # this set's matrix goes before the next one is made


def _more(comm: Comm, case: Case, sets: list[SetTicks], tracer: TracerLike) -> bool:
    """Whether another set is due; rank 0's clock decides where a time is to be filled. Collective."""
    timed = len(sets) - case.warmups
    if timed < max(case.sets, 1):
        return True
    if case.seconds <= 0:
        return False
    spent = sum(int(s.ticks[CG]) for s in sets if not s.warmup) / tracer.ticks_per_second
    return bool(comm.bcast(spent < case.seconds))


def _together(comm: Comm, tracer: TracerLike) -> None:
    with span(tracer, SYNC):
        comm.Barrier()


def _assemble(case: Case, prepared: Prepared) -> Operator:
    material = prepared.spec.material
    return build_operator(case.storage, prepared.sub, material.lam, material.mu)


def _solver(case: Case, prepared: Prepared, operator: Operator, tracer: TracerLike) -> ConjugateGradients:
    """Vectors, bound kernels and the preconditioner: set up within assembly, as the matrix is."""
    M = make_preconditioner(case.precond, operator, prepared.interface, prepared.sub)
    return ConjugateGradients(operator, prepared.interface, M, tracer, overlap=case.overlap)
