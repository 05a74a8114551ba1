"""Conjugate gradients over ranks: the loop of the source thesis (seed 004, Fig. 4.4).

The loop is Python; every line of it that touches n numbers is one call of a bound kernel. It knows
neither MPI nor a matrix format: it needs a product, a neighbour sum, an all-reduce, vector
updates and a preconditioner. `iterate` drives this loop and the variants of solve/variants.py.

Symbols
    x  solution            r = f - A x   residual       d  direction
    q = A d                z = M^-1 r    preconditioned residual (r itself without one)
    gamma = <r, z>         tau = <d, q>  alpha, beta    step lengths
Arrays are flat (3 * n_active,), interior nodes first, interface last; shared dofs carry the same
bits on every sharer.

Modules and phases: M1 cg.spmv_interior, M2 cg.spmv_interface, M3 cg.send cg.wait cg.unpack,
M4 cg.dot cg.allreduce, M6 M7 cg.axpy with the local part of M9, M9 cg.allreduce, M12 cg.axpy (it opens the
next iteration). M5 M8 M10 M11 are scalars: they are what cg leaves over its parts, with the cost of the
loop itself.
"""

from dataclasses import dataclass, field
from math import inf, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fembench.base.errors import BreakdownError
from fembench.dist.interface import AllReduce, Interface
from fembench.kernels.backend import kernels
from fembench.solve.operators import Operator
from fembench.solve.work import Work, dot, folded, passes
from fembench.timing.phases import AXPY, CG, DOT, NAMES, PRECOND, SPMV_INTERFACE, SPMV_INTERIOR
from fembench.timing.tracer import TracerLike

F64 = NDArray[np.float64]


class Preconditioner(Protocol):
    """M^-1, symmetric positive definite."""

    identity: bool  # M = I: nothing is applied, z is r
    inverse: F64 | None  # diagonal (n,) or 3x3 blocks (n / 3, 6): folded into the vector updates
    work: Work  # of one apply()

    def apply(self, r: F64, z: F64) -> None:
        """Overwrite z with M^-1 r, consistent on shared dofs. Collective if M communicates."""


@dataclass(frozen=True)
class Control:
    """When to stop."""

    tolerance: float = 1e-6  # on |r|_2
    relative: bool = False  # tolerance times |f|
    max_iterations: int = 10_000
    fixed: int = 0  # > 0: exactly so many iterations, whatever the residual

    def target(self, norm_f: float) -> float:
        """|r| at which to stop; 0 where work is fixed."""
        if self.fixed:
            return 0.0
        return self.tolerance * norm_f if self.relative else self.tolerance

    @property
    def limit(self) -> int:
        return self.fixed or self.max_iterations


def _nothing() -> NDArray[np.int64]:
    return np.zeros(len(NAMES), np.int64)


@dataclass(frozen=True)
class CGResult:
    """What one solve did. Not converging is a result, not an exception."""

    x: F64  # (3 * n_active,), a view of the solver's own vector
    iterations: int
    residuals: tuple[float, ...]  # |r_k| by recurrence, k = 0 … iterations
    target: float
    converged: bool
    outside: NDArray[np.int64] = field(default_factory=_nothing)  # (n_phases,) spans before the iterations


class Solver(Protocol):
    """One rank's handle on a matrix, a preconditioner and a way to solve with them."""

    operator: Operator
    work: Work  # of one iteration, products apart

    def solve(self, f: F64, control: Control, record: int = 0) -> CGResult:
        """Solve A x = f from x = 0; f (3 * n_active,) is the rank's unsummed load. Collective."""


class Method(Protocol):
    """One way to do a conjugate-gradient iteration."""

    x: F64
    gamma: float  # <r, M^-1 r>
    outside: NDArray[np.int64]  # (n_phases,) spans that belong to no iteration

    def start(self, f: F64) -> float:
        """x = 0, r = the sum of f; returns <r, r>. Collective."""

    def advance(self) -> float:
        """One iteration; returns <r, r> after it. Collective."""


def iterate(method: Method, tracer: TracerLike, f: F64, control: Control, record: int) -> CGResult:
    """Iterate until the residual is small enough or the limit is reached. Collective.

    A tracer that is recording goes on for `record` iterations and is then switched off. Raises
    BreakdownError on every rank alike (all scalars come from all-reduces) if A or M is not positive definite.
    """
    tracer.iteration = -1
    tracer.begin(CG)
    residual = sqrt(method.start(f))
    residuals = [residual]
    target = control.target(residual)
    for k in range(control.limit):
        gamma = method.gamma
        if not 0.0 < gamma < inf:
            if gamma == 0.0:  # a zero load, or fixed work went on to what doubles call zero
                break
            raise breakdown("<r, M r>", gamma, k)
        tracer.iteration = k
        if k == record:
            tracer.recording = False
        residual = sqrt(method.advance())
        residuals.append(residual)
        if residual <= target:  # M10
            break
    tracer.end(CG)
    tracer.iteration = -1
    return CGResult(
        x=method.x,
        iterations=len(residuals) - 1,
        residuals=tuple(residuals),
        target=target,
        converged=residual <= target,
        outside=method.outside,
    )


def breakdown(name: str, value: float, iteration: int) -> BreakdownError:
    """The error to raise where a number that must be positive is not."""
    return BreakdownError(
        f"{name} = {value:.3e} at iteration {iteration}; expected > 0: is the mesh restrained?"
    )


class Multiply:
    """q = A d summed over sharers, bound to its vectors; messages travel while interior rows are computed."""

    def __init__(
        self, A: Operator, interface: Interface, d: F64, q: F64, tracer: TracerLike, overlap: bool
    ) -> None:
        self._product, self._update = A.bind(d, q), interface.bind(q, tracer)
        self._tracer, self._overlap = tracer, overlap

    def run(self) -> float | None:
        """Overwrite q. Returns the rank's part of <d, q> where the product knows it. Collective."""
        begin, end = self._tracer.begin, self._tracer.end
        begin(SPMV_INTERFACE)
        at_interface = self._product.interface()  # M2
        end(SPMV_INTERFACE)
        if self._overlap:
            self._update.start()  # M3
        begin(SPMV_INTERIOR)
        inside = self._product.interior()  # M1
        end(SPMV_INTERIOR)
        if not self._overlap:
            self._update.start()
        self._update.finish()
        if at_interface is None or inside is None:
            return None
        return at_interface + inside  # d . (A_local d) needs no weights: its sum over ranks is <d, A d>


class ConjugateGradients:
    """One rank's solver: vectors allocated and kernels bound once, solved as often as wanted."""

    def __init__(
        self,
        A: Operator,
        interface: Interface,
        M: Preconditioner,
        tracer: TracerLike,
        *,
        overlap: bool = True,
    ) -> None:
        n = interface.n_dofs
        self.operator, self.work = A, work_of(A, M, n)
        self.x, self.r, self.d, self.q = (kernels.empty(n) for _ in range(4))
        self.z = self.r if M.identity or M.inverse is not None else kernels.empty(n)
        self._M, self._tracer = M, tracer
        self._folded = M.inverse is not None
        self._multiply = Multiply(A, interface, self.d, self.q, tracer, overlap)
        self._sum_loads = interface.bind(self.q, tracer)
        self._vectors = kernels.CGVectors(
            self.x, self.r, self.d, self.q, self.z, interface.weights, M.inverse
        )
        self._tau = AllReduce(interface.comm, 1, tracer)
        self._rho = AllReduce(interface.comm, 1 if M.identity else 2, tracer)

    def solve(self, f: F64, control: Control, record: int = 0) -> CGResult:
        """Solve A x = f from x = 0; f (3 * n_active,) is the rank's unsummed load. As `iterate` says."""
        return iterate(self, self._tracer, f, control, record)

    def start(self, f: F64) -> float:
        """Lines 1–5 of the thesis: x = 0, r = sum of f, d = 0; returns <r, r>."""
        before = self._tracer.counts()
        begin, end = self._tracer.begin, self._tracer.end
        begin(AXPY)
        self.q[:] = f
        end(AXPY)
        self._sum_loads.start()
        self._sum_loads.finish()
        begin(AXPY)
        self.x[:] = 0.0
        self.d[:] = 0.0
        self.r[:] = self.q
        end(AXPY)
        self._beta = 0.0
        rr = self._step(0.0)
        self.outside = self._tracer.counts() - before
        return rr

    def advance(self) -> float:
        """Lines 6–12 of the thesis."""
        begin, end = self._tracer.begin, self._tracer.end
        begin(AXPY)
        self._vectors.direction(self._beta)  # M12 of the last iteration
        end(AXPY)
        dq = self._multiply.run()
        if dq is None:
            begin(DOT)
            dq = self._vectors.dot_dq()  # M4
            end(DOT)
        self._tau.values[0] = dq
        tau = self._tau.run()[0]
        if not 0.0 < tau < inf:
            raise breakdown("<d, A d>", tau, self._tracer.iteration + 1)
        gamma = self.gamma  # M8
        rr = self._step(gamma / tau)  # M5
        self._beta = self.gamma / gamma  # M11
        return rr

    def _step(self, alpha: float) -> float:
        """x += alpha d, r -= alpha q, z = M r, gamma = <r, z>; returns <r, r>. One all-reduce for both."""
        begin, end = self._tracer.begin, self._tracer.end
        sums = self._rho.values
        begin(AXPY)
        if self._folded:
            sums[0], sums[1] = self._vectors.step_jacobi(alpha)
        else:
            sums[0] = self._vectors.step(alpha)  # M6, M7 and the local part of M9 in one pass
        end(AXPY)
        if not self._folded and not self._M.identity:
            begin(PRECOND)
            self._M.apply(self.r, self.z)
            end(PRECOND)
            begin(DOT)
            sums[1] = self._vectors.dot_rz()
            end(DOT)
        sums = self._rho.run()  # M9
        rr, self.gamma = sums[0], sums[-1]
        return rr


def work_of(A: Operator, M: Preconditioner, n: int) -> Work:
    """Of one iteration, products apart: step (x r d q read, x r written), direction (d z read, d written)."""
    work = passes(n, 6, 6) + passes(n, 3, 2)
    work += Work(flops=2 * n) if A.fused else dot(n)
    if M.inverse is not None:
        return work + folded(n, M.inverse.size) * 2 + Work(flops=2 * n)
    return work if M.identity else work + M.work + dot(n)
