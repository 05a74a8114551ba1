"""Conjugate gradients over ranks. Source: R. R. Ferreira (2006), Fig. 4.4.

The loop is Python; each line that touches n numbers is one call of a bound kernel. The
loop knows neither MPI nor a matrix format: it needs a product, a neighbour sum, an
all-reduce, vector updates and a preconditioner. solve/iterate.py drives this loop and
its recurrences.

Symbols
    x  solution            r = f - A x   residual       d  direction
    q = A d                z = M^-1 r    preconditioned residual (r itself without one)
    gamma = <r, z>         tau = <d, q>  alpha, beta    step lengths
Arrays are flat (3 * n_active,), interior nodes first, interface nodes last. A shared
dof has the same bits on every rank that shares it. Vectors lie where the kernels of A
are: on the host, or on a device.

Ferreira's modules and their phases: M1 cg.spmv_interior, M2 cg.spmv_interface,
M3 cg.send cg.wait cg.unpack, M4 cg.dot cg.allreduce, M6 M7 cg.axpy with the
local part of M9, M9 cg.allreduce, M12 cg.axpy (it opens the next iteration). M5
M8 M10 M11 are scalars: with the cost of the loop itself, they are the time of cg
that no part of it accounts for.
"""

from collections.abc import Callable, Iterator
from math import inf

from fembench.base.arrays import F64, I64
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


class ConjugateGradients:
    """One rank's solver: vectors and kernels are made once, then reused by every solve."""

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
        self.x, self.r, self.d, self.q = (A.kernels.empty(n) for _ in range(4))
        self.z = self.r if M.identity or M.inverse is not None else A.kernels.empty(n)
        self._M, self._tracer = M, tracer
        self._multiply = bind_product(A, interface, self.d, self.q, tracer, overlap)
        self._sum_loads = interface.bind(self.q, tracer)
        self._vectors = A.kernels.CGVectors(
            self.x, self.r, self.d, self.q, self.z, interface.weights, M.inverse
        )
        self._tau = AllReduce(interface.comm, 1, tracer)
        self._rho = AllReduce(interface.comm, 1 if M.identity else 2, tracer)

    def solve(self, f: F64, control: StoppingCriterion, record: int = 0) -> CGResult:
        """Solve A x = f from x = 0; f (3 * n_active,): the rank's load. See `iterate`."""
        return iterate(self, self._tracer, f, control, record)

    def iterations(self, f: F64) -> Iterator[float]:
        """Yield <r, r> for x = 0, then after each iteration; the
        loop's calls are bound first."""
        begin, end = self._tracer.begin, self._tracer.end
        multiply = self._multiply
        direction = self._vectors.direction
        dot_dq = self._vectors.dot_dq
        dq = self._tau.values
        sum_dq = self._tau.run
        step = self._bind_step()
        self._start(f)
        rr, gamma = step(0.0)
        beta = 0.0
        yield rr
        while gamma != 0.0:  # zero: no load, or fixed work went on until the residual underflowed
            if not 0.0 < gamma < inf:
                raise breakdown("<r, M r>", gamma, self._tracer.iteration + 1)
            begin(AXPY)
            direction(beta)  # M12 of the iteration before
            end(AXPY)
            local = multiply()  # M1, M2, M3
            if local is None:
                begin(DOT)
                local = dot_dq()  # M4
                end(DOT)
            dq[0] = local
            sum_dq()
            tau = dq[0]
            if not 0.0 < tau < inf:
                raise breakdown("<d, A d>", tau, self._tracer.iteration + 1)
            old = gamma  # M8
            rr, gamma = step(old / tau)  # M5, M6, M7, M9
            beta = gamma / old  # M11
            yield rr

    def _start(self, f: F64) -> None:
        """x = 0, r = the sum of f, d = 0."""
        self._tracer.begin(AXPY)
        self.q[:] = f
        self._tracer.end(AXPY)
        self._sum_loads.start()
        self._sum_loads.finish()
        self._tracer.begin(AXPY)
        self.x[:] = 0.0
        self.d[:] = 0.0
        self.r[:] = self.q
        self._tracer.end(AXPY)

    def _bind_step(self) -> Callable[[float], tuple[float, float]]:
        """A call: x += alpha d, r -= alpha q, z = M r; <r, r> and
        <r, z> by one all-reduce."""
        begin = self._tracer.begin
        end = self._tracer.end
        sums = self._rho.values
        total = self._rho.run
        vectors = self._vectors
        apply = self._M.apply
        r = self.r
        z = self.z
        move = vectors.step
        move_folded = vectors.step_jacobi
        dot_rz = vectors.dot_rz

        def plain(alpha: float) -> tuple[float, float]:
            begin(AXPY)
            sums[0] = move(alpha)  # M6, M7 and the local part of M9 in one pass
            end(AXPY)
            total()
            return sums[0], sums[0]

        def folded(alpha: float) -> tuple[float, float]:
            begin(AXPY)
            sums[0], sums[1] = move_folded(alpha)
            end(AXPY)
            total()
            return sums[0], sums[1]

        def applied(alpha: float) -> tuple[float, float]:
            begin(AXPY)
            sums[0] = move(alpha)
            end(AXPY)
            begin(PRECOND)
            apply(r, z)
            end(PRECOND)
            begin(DOT)
            sums[1] = dot_rz()
            end(DOT)
            total()
            return sums[0], sums[1]

        if self._M.identity:
            return plain
        return applied if self._M.inverse is None else folded
