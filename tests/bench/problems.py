"""Solve a case inside a test, on the ranks that run it."""

import numpy as np

from fembench.bench.measure import control_of
from fembench.bench.prepare import prepare
from fembench.bench.verify import Solved, verify
from fembench.records.case import Case
from fembench.solve.from_names import recurrence_class
from fembench.solve.operators import build_operator
from fembench.solve.precond import make_preconditioner
from fembench.timing.tracer import NullTracer, make_tracer

__all__ = ["counted", "solved", "solved_and_verified", "solved_on"]


def solved(comm, tracer=None, **fields):
    """(Solved, CGResult) of Case(**fields)."""
    tracer = tracer or NullTracer()
    case = Case.of(ranks=comm.size, **fields)
    return solved_on(prepare(comm, case, tracer), case, tracer)


def solved_on(p, case, tracer):
    """(Solved, CGResult) of what was prepared."""
    A = build_operator(case.method.storage, p.sub, *p.lame)
    M = make_preconditioner(case.method.precond, A, p.interface, p.sub)
    cg = recurrence_class(case.method.recurrence)(A, p.interface, M, tracer, overlap=case.method.overlap)
    result = cg.solve(p.rhs, control_of(case, p.mesh.n_equations))
    return Solved(p, A, result.x), result


def solved_and_verified(comm, **fields):
    """(CGResult, Verification)."""
    state, result = solved(comm, **fields)
    return result, verify(state)


def counted(comm, **fields):
    """(Solved, CGResult, spans by phase) with a tracer that counts."""
    tracer = make_tracer("counter")
    state, result = solved(comm, tracer, **fields)
    return state, result, np.asarray(tracer.counts())
