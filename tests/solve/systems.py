"""A prepared case that every storage, preconditioner and recurrence can solve; on any number of ranks."""

import numpy as np

from fembench.bench.prepare import prepare
from fembench.methods.lookup import names, preconds
from fembench.records.case import Case
from fembench.solve.from_names import recurrence_class
from fembench.solve.iterate import StoppingCriterion
from fembench.solve.operators import build_operator
from fembench.solve.precond import make_preconditioner
from fembench.timing.tracer import make_tracer

PRECISE = StoppingCriterion(1e-8, relative=True)
STORAGES = ("dense", "csr", "bsr", "sym", "ebe")
PRECONDITIONERS = names(preconds("own"))


class System:
    """One rank's share of a case: its matrix A, its preconditioner M, its right-hand side."""

    def __init__(self, comm, mesh, storage="sym", precond="none", *, stiffness=1.0, **fields):
        self.tracer = make_tracer("counter")
        self.prepared = prepare(comm, Case.of(ranks=comm.size, mesh=str(mesh), **fields), self.tracer)
        self.sub, self.interface, self.rhs = self.prepared.sub, self.prepared.interface, self.prepared.rhs
        lam, mu = self.prepared.lame
        self.A = build_operator(storage, self.sub, stiffness * lam, stiffness * mu)
        self.M = self.make(precond, self.tracer)

    def make(self, precond, tracer=None):
        """A preconditioner; one that is traced is applied inside a solve."""
        return make_preconditioner(precond, self.A, self.interface, self.sub, tracer)

    def solver(self, recurrence, **choices):
        return recurrence_class(recurrence)(self.A, self.interface, self.M, self.tracer, **choices)

    def solve(self, recurrence="standard", control=PRECISE, **choices):
        """(CGResult, spans by phase)."""
        self.tracer.reset()
        result = self.solver(recurrence, **choices).solve(self.rhs, control)
        return result, self.tracer.counts()

    def vector(self, seed):
        """Random, alike on all sharers, zero on restrained dofs."""
        draw = np.random.default_rng(seed + 100 * self.interface.comm.rank)
        v = self.interface.update(draw.standard_normal(self.interface.n_dofs))
        v[self.sub.fixed] = 0
        return v

    def times_A(self, v):
        """A v, summed."""
        return self.interface.update(self.A.apply(v))

    def norm(self, v):
        return np.sqrt(self.interface.dot(v, v))

    def true_residual(self, x):
        """|f - A x|"""
        return self.norm(self.interface.update(self.rhs - self.A.apply(x)))
