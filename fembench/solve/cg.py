"""Conjugate gradients over ranks: the loop of the source thesis (seed 004, Fig. 4.4).

The loop is Python; every line of it that touches n numbers is one call of a bound kernel. It knows
neither MPI nor a matrix format: it needs a product, a neighbour sum, an all-reduce, vector
updates and a preconditioner.

Symbols
    x  solution            r = f - A x   residual       d  direction
    q = A d                z = M^-1 r    preconditioned residual (r itself without one)
    gamma = <r, z>         tau = <d, q>  alpha, beta    step lengths
Arrays are flat (3 * n_active,), interior nodes first, interface last; shared dofs carry the same
bits on every sharer.

Modules and phases: M1 cg.spmv_interior, M2 cg.spmv_interface, M3 cg.send cg.wait cg.unpack,
M4 cg.dot cg.allreduce, M6 M7 cg.axpy with the local part of M9, M9 cg.allreduce, M12 cg.axpy. M5 M8 M10
M11 are scalars: they are what cg leaves over its parts, with the cost of the loop itself.
"""

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fembench.base.errors import BreakdownError
from fembench.dist.interface import AllReduce, Interface
from fembench.kernels.backend import kernels
from fembench.solve.operators import Operator
from fembench.timing.phases import AXPY, CG, DOT, PRECOND, SPMV_INTERFACE, SPMV_INTERIOR
from fembench.timing.tracer import TracerLike

F64 = NDArray[np.float64]


class Preconditioner(Protocol):
    """M^-1, symmetric positive definite."""

    identity: bool  # M = I: nothing is applied, z is r
    inverse: F64 | None  # diagonal (n,) or 3x3 blocks (n / 3, 6): folded into the vector updates

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


@dataclass(frozen=True)
class CGResult:
    """What one solve did. Not converging is a result, not an exception."""

    x: F64  # (3 * n_active,), a view of the solver's own vector
    iterations: int
    residuals: tuple[float, ...]  # |r_k| by recurrence, k = 0 … iterations
    target: float
    converged: bool


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
        self.operator = A
        self.x, self.r, self.d, self.q = (kernels.empty(n) for _ in range(4))
        self.z = self.r if M.identity or M.inverse is not None else kernels.empty(n)
        self._interface, self._M, self._tracer, self._overlap = interface, M, tracer, overlap
        self._product = A.bind(self.d, self.q)
        self._update = interface.bind(self.q, tracer)
        self._vectors = kernels.CGVectors(
            self.x, self.r, self.d, self.q, self.z, interface.weights, M.inverse
        )
        self._tau = AllReduce(interface.comm, 1, tracer)
        self._rho = AllReduce(interface.comm, 1 if M.identity else 2, tracer)

    def solve(self, f: F64, control: Control, record: int = 0) -> CGResult:
        """Solve A x = f from x = 0; f (3 * n_active,) is the rank's unsummed load. Collective.

        A tracer that is recording goes on for `record` iterations and is then switched off. Raises
        BreakdownError on every rank alike if A or M is not positive definite.
        """
        tracer = self._tracer
        tracer.iteration = -1
        tracer.begin(CG)
        gamma, rr = self._start(f)
        norm_f = sqrt(rr)
        residuals = [norm_f]
        target = control.target(norm_f)
        keep_going = rr > 0.0  # a zero load has the solution zero
        while keep_going and len(residuals) <= control.limit:
            tracer.iteration += 1
            if tracer.iteration == record:
                tracer.recording = False
            tau = self._multiply()
            _check_positive("<d, A d>", tau, len(residuals))
            gamma_old = gamma  # M8
            rr, gamma = self._step(gamma / tau)  # M5
            residuals.append(sqrt(rr))
            if not control.fixed and residuals[-1] <= target:  # M10
                break
            if gamma == 0.0:
                break
            _check_positive("<r, M r>", gamma, len(residuals))
            tracer.begin(AXPY)
            self._vectors.direction(gamma / gamma_old)  # M11, M12
            tracer.end(AXPY)
        tracer.end(CG)
        tracer.iteration = -1
        return CGResult(
            x=self.x,
            iterations=len(residuals) - 1,
            residuals=tuple(residuals),
            target=target,
            converged=residuals[-1] <= target,
        )

    def _start(self, f: F64) -> tuple[float, float]:
        """Lines 1–5 of the thesis: x = 0, r = sum of f, d = M r; returns <r, z>, <r, r>."""
        begin, end = self._tracer.begin, self._tracer.end
        begin(AXPY)
        self.q[:] = f
        end(AXPY)
        self._update.start()
        self._update.finish()
        begin(AXPY)
        self.x[:] = 0.0
        self.d[:] = 0.0
        self.r[:] = self.q
        end(AXPY)
        rr, gamma = self._step(0.0)
        begin(AXPY)
        self._vectors.direction(0.0)
        end(AXPY)
        return gamma, rr

    def _multiply(self) -> float:
        """q = A d summed over sharers; returns <d, q>. Messages travel while interior rows are computed."""
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
            begin(DOT)
            self._tau.values[0] = self._vectors.dot_dq()  # M4
            end(DOT)
        else:  # d . (A_local d) needs no weights: its sum over ranks is <d, A d>
            self._tau.values[0] = at_interface + inside
        return self._tau.run()[0]

    def _step(self, alpha: float) -> tuple[float, float]:
        """x += alpha d, r -= alpha q, z = M r; returns the global <r, r> and <r, z> from one all-reduce."""
        begin, end = self._tracer.begin, self._tracer.end
        values = self._rho.values
        begin(AXPY)
        if self._M.inverse is not None:
            values[:] = self._vectors.step_jacobi(alpha)
            end(AXPY)
            rr, rz = self._rho.run()
            return rr, rz
        values[0] = self._vectors.step(alpha)  # M6, M7 and the local part of M9 in one pass
        end(AXPY)
        if self._M.identity:
            rr = self._rho.run()[0]  # M9
            return rr, rr
        begin(PRECOND)
        self._M.apply(self.r, self.z)
        end(PRECOND)
        begin(DOT)
        values[1] = self._vectors.dot_rz()
        end(DOT)
        rr, rz = self._rho.run()
        return rr, rz


def _check_positive(name: str, value: float, iteration: int) -> None:
    """The values come from all-reduces, so every rank takes the same branch."""
    if not (value > 0.0 and isfinite(value)):
        raise BreakdownError(
            f"{name} = {value:.3e} at iteration {iteration}; expected > 0: is the mesh restrained?"
        )
