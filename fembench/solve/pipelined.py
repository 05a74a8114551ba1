"""Conjugate gradients with one all-reduce, hidden behind product and preconditioner.

Source: P. Ghysels, W. Vanroose, Hiding global synchronization latency in the
preconditioned Conjugate Gradient algorithm, Parallel Computing 40 (2014) 224-238,
algorithm 4.

Symbols (x r alpha beta gamma as in cg.py)
    u = M^-1 r             p  direction                 delta = <w, u>
    w = A u                s = A p                      <p, A p> = delta - beta gamma / alpha_old
    m = M^-1 w             q = M^-1 s
    n = A m                z = A q                      only m and n are computed, the others recur

Rounding. Recurrences instead of products let r drift away from f - A x. On a solid
clamped at one face and solved to |r| = 2e-9 |f|, |f - A x| is 4 |r| with 30 k equations
and 14 |r| with 150 k; |r| never reaches 1e-11 |f|. The remedy is residual replacement
(S. Cools, E. F. Yetkin, E. Agullo, L. Giraud, W. Vanroose, SIAM J. Matrix Anal. Appl.
39 (2018) 426-450), here at fixed intervals: every REPLACE iterations, four products
recompute r w s z from x and p, which is 8 % more products. Then |f - A x| = |r|, and
1e-11 |f| takes one iteration more than the standard recurrence.

Phases as in cg.py; starting the all-reduce is cg.send, waiting for it cg.allreduce.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fembench.base.arrays import F64, I64
from fembench.kernels.backend import kernels
from fembench.methods.lookup import recurrence_of
from fembench.methods.steps import NO_WORK, Work
from fembench.ranks.interface import Interface, PendingAllReduce
from fembench.records.phases import AXPY, PRECOND
from fembench.solve.iterate import CGResult, Preconditioner, StoppingCriterion, bind_product, iterate
from fembench.solve.operators import Operator
from fembench.solve.recurrences import Lengths, staggered
from fembench.timing.tracer import TracerLike

REPLACE = recurrence_of("pipelined").replace  # iterations between two residual replacements


class PipelinedCG:
    """Ghysels and Vanroose: the all-reduce travels while n = A M^-1 w is computed.

    `replace`: iterations between two residual replacements, 0 for none.
    """

    outside: I64

    def __init__(
        self,
        A: Operator,
        interface: Interface,
        M: Preconditioner,
        tracer: TracerLike,
        *,
        overlap: bool = True,
        work: Work = NO_WORK,
        replace: int = REPLACE,
    ) -> None:
        n = interface.n_dofs
        self.operator, self.work = A, work
        self._outer_M = not M.identity and M.inverse is None  # not folded into the step
        vectors = staggered(n, 11 if self._outer_M else 8 if M.identity else 9)
        self.x, self.r, self.w, self.p, self.s, self.z, self.n, self._f, *more = vectors
        if M.identity:
            self.m = self.w
            self.u = self.r
            self.q = self.s
        elif self._outer_M:
            self.m, self.u, self.q = more
        else:  # u and q are computed in m when they are needed
            self.m = self.u = self.q = more[0]
        self._M = M
        self._tracer = tracer
        self._replace = replace
        self._sum_loads = interface.bind(self._f, tracer)
        self._n_is_Am, self._n_is_Ax, self._w_is_Au, self._s_is_Ap, self._z_is_Aq = (
            bind_product(A, interface, d, q, tracer, overlap)
            for d, q in (
                (self.m, self.n),
                (self.x, self.n),
                (self.u, self.w),
                (self.p, self.s),
                (self.q, self.z),
            )
        )
        self._sums = PendingAllReduce(interface.comm, 3, tracer)
        letters = (self.x, self.r, self.u, self.w, self.p, self.s, self.z, self.q, self.m, self.n)
        self._vectors = kernels.Pipelined(*letters, interface.weights, M.inverse, self._sums.values)

    def solve(self, f: F64, control: StoppingCriterion, record: int = 0) -> CGResult:
        """Solve A x = f from x = 0; f (3 * n_active,): the rank's load. See `iterate`."""
        return iterate(self, self._tracer, f, control, record)

    def iterations(self, f: F64) -> Iterator[float]:
        """Yield <r, r> for x = 0, then after each iteration."""
        begin, end = self._tracer.begin, self._tracer.end
        start_sums = self._sums.start
        finish_sums = self._sums.finish
        sums = self._sums.sums
        n_is_Am = self._n_is_Am
        lengths = Lengths().next
        step = self._vectors.step
        outer_M = self._outer_M
        apply = self._M.apply
        w = self.w
        m = self.m
        self._start(f)
        age = 0
        while True:
            start_sums()
            if outer_M:
                begin(PRECOND)
                apply(w, m)
                end(PRECOND)
            n_is_Am()
            finish_sums()
            yield sums[0]
            if sums[1] == 0.0:
                return
            alpha, beta = lengths(sums[1], sums[2], self._tracer.iteration + 1)
            begin(AXPY)
            step(alpha, beta)
            end(AXPY)
            age += 1
            if age == self._replace:
                self._replace_residual()
                age = 0

    def _start(self, f: F64) -> None:
        """x = 0, r = the sum of f, u = M r, w = A u, and the rank's part of the sums."""
        self._tracer.begin(AXPY)
        self._f[:] = f
        self._tracer.end(AXPY)
        self._sum_loads.start()
        self._sum_loads.finish()
        self._tracer.begin(AXPY)
        for v in (self.x, self.p, self.s, self.z, self.q):
            v[:] = 0.0
        self.r[:] = self._f
        self._tracer.end(AXPY)
        self._precondition(self.r, self.u)
        self._w_is_Au()
        self._refresh()

    def _replace_residual(self) -> None:
        """Residual replacement: r from x, w from r, s and z from p,
        in spans of no iteration."""
        before = self._tracer.counts()
        self._n_is_Ax()
        self._tracer.begin(AXPY)
        np.subtract(self._f, self.n, out=self.r)
        self._tracer.end(AXPY)
        self._precondition(self.r, self.u)
        self._w_is_Au()
        self._s_is_Ap()
        self._precondition(self.s, self.q)
        self._z_is_Aq()
        self._refresh()
        self.outside += self._tracer.counts() - before

    def _precondition(self, r: F64, z: F64) -> None:
        """z = M^-1 r"""
        if not self._M.identity:
            self._tracer.begin(PRECOND)
            self._M.apply(r, z)
            self._tracer.end(PRECOND)

    def _refresh(self) -> None:
        """The sums (and a folded-in m) of vectors that were recomputed."""
        self._tracer.begin(AXPY)
        self._vectors.refresh()
        self._tracer.end(AXPY)
