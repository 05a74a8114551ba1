"""Conjugate gradients with one all-reduce per iteration: step lengths, and the classic one.

Source: A. T. Chronopoulos, C. W. Gear, s-step iterative methods for symmetric linear
systems, J. Comput. Appl. Math. 25 (1989) 153-168. It is as insensitive to rounding as
the standard recurrence.

Symbols (x r alpha beta gamma as in cg.py)
    u = M^-1 r             p  direction                 delta = <w, u>
    w = A u                s = A p, by a recurrence     <p, A p> = delta - beta gamma / alpha_old
Phases as in cg.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from fembench.base.arrays import F64, I64
from fembench.kernels.backend import kernels
from fembench.methods.steps import NO_WORK, Work
from fembench.ranks.interface import AllReduce, Interface
from fembench.records.phases import AXPY, DOT, PRECOND
from fembench.solve.iterate import (
    CGResult,
    Preconditioner,
    StoppingCriterion,
    bind_product,
    breakdown,
    iterate,
)
from fembench.solve.operators import Operator
from fembench.timing.tracer import TracerLike


def staggered(n: int, count: int) -> list[F64]:
    """`count` vectors (n,), each nine cache lines further into its page.

    A pass walks up to eleven vectors in step. If all begin at the same offset of a
    huge page, they compete for the same cache sets; measured cost: 20 % (nine vectors)
    to 40 % (eleven) of a pass.
    """
    line, page = 8, 512  # doubles
    stride = -(-n // page) * page + 9 * line
    block = kernels.empty(count * stride)
    return [block[k * stride :][:n] for k in range(count)]


class Lengths:
    """alpha and beta of each step from gamma = <r, u> and delta = <w, u>."""

    def __init__(self) -> None:
        self.gamma, self.alpha = inf, 1.0  # makes beta of the first step 0

    def next(self, gamma: float, delta: float, iteration: int) -> tuple[float, float]:
        """(alpha, beta); a steepest-descent step if rounding has destroyed <p, A p>."""
        if not 0.0 < gamma < inf:
            raise breakdown("<r, M r>", gamma, iteration)
        if not 0.0 < delta < inf:
            raise breakdown("<u, A u>", delta, iteration)
        beta = gamma / self.gamma
        pAp = delta - beta * gamma / self.alpha
        if not 0.0 < pAp < inf:
            beta, pAp = 0.0, delta
        self.gamma = gamma
        self.alpha = gamma / pAp
        return self.alpha, beta


class SingleReductionCG:
    """Chronopoulos and Gear: <r, r>, <r, u> and <w, u> share one all-reduce."""

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
    ) -> None:
        n = interface.n_dofs
        self.operator, self.work = A, work
        self.x, self.r, self.w, self.p, self.s, *more = staggered(n, 5 if M.identity else 6)
        self.u = self.r if M.identity else more[0]
        self._M, self._tracer = M, tracer
        self._outer_M = not M.identity and M.inverse is None  # not folded into the step
        self._multiply = bind_product(A, interface, self.u, self.w, tracer, overlap)
        self._sum_loads = interface.bind(self.r, tracer)
        self._sums = AllReduce(interface.comm, 3, tracer)
        self._vectors = kernels.SingleReduction(
            self.x, self.r, self.u, self.w, self.p, self.s, interface.weights, M.inverse, self._sums.values
        )

    def solve(self, f: F64, control: StoppingCriterion, record: int = 0) -> CGResult:
        """Solve A x = f from x = 0; f (3 * n_active,): the rank's load. See `iterate`."""
        return iterate(self, self._tracer, f, control, record)

    def iterations(self, f: F64) -> Iterator[float]:
        """Yield <r, r> for x = 0, then after each iteration."""
        begin = self._tracer.begin
        end = self._tracer.end
        sums = self._sums.values
        total = self._sums.run
        multiply = self._multiply
        lengths = Lengths().next
        vectors = self._vectors
        step = vectors.step
        dot_ru = vectors.dot_ru
        dot_wu = vectors.dot_wu
        outer_M = self._outer_M
        apply = self._M.apply
        r = self.r
        u = self.u
        self._start(f)
        alpha = beta = 0.0  # the first pass only computes u
        while True:
            begin(AXPY)
            step(alpha, beta)
            end(AXPY)
            if outer_M:
                begin(PRECOND)
                apply(r, u)
                end(PRECOND)
                begin(DOT)
                dot_ru()
                end(DOT)
            wu = multiply()
            if wu is None:
                begin(DOT)
                dot_wu()
                end(DOT)
            else:
                sums[2] = wu
            total()
            yield sums[0]
            if sums[1] == 0.0:
                return
            alpha, beta = lengths(sums[1], sums[2], self._tracer.iteration + 1)

    def _start(self, f: F64) -> None:
        """x = 0, r = the sum of f."""
        self._tracer.begin(AXPY)
        for v in (self.x, self.u, self.w, self.p, self.s):
            v[:] = 0.0
        self.r[:] = f
        self._tracer.end(AXPY)
        self._sum_loads.start()
        self._sum_loads.finish()
