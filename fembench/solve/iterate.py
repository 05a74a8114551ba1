"""What all recurrences share: stopping rule, result, driver, and the distributed product.

A recurrence (`Recurrence`) is a generator that yields <r, r>; `iterate` draws from it
until the residual is small enough. It reads like its paper, and every name is bound
before the loop: looking up attributes would cost half a microsecond per iteration.
"""

from collections.abc import Callable, Iterator, Sequence
from math import sqrt
from typing import Protocol

import numpy as np
from msgspec import Struct, field

from fembench.base.arrays import F64, I64
from fembench.base.errors import BreakdownError
from fembench.methods.steps import Work
from fembench.ranks.interface import Interface
from fembench.records.phases import CG, NAMES, SPMV_INTERFACE, SPMV_INTERIOR
from fembench.solve.operators import Operator
from fembench.timing.tracer import TracerLike, chain

BETWEEN_SHOWS = 1 << 16  # unknowns updated on a rank until it shows its residual again: 0.01 % of the time
Show = Callable[[int, float, float], None]
ROUNDING = 1e-12  # of |f|: below this residual, step lengths may consist of rounding errors alone


class Preconditioner(Protocol):
    """M^-1, symmetric positive definite."""

    identity: bool  # M = I: z is r
    inverse: F64 | None  # diagonal (n,) or 3x3 blocks (n / 3, 6): folded into the vector updates
    extra: Work  # of one application on this rank, its declared steps apart: coarse matrices

    def apply(self, r: F64, z: F64) -> None:
        """Overwrite z with M^-1 r, consistent on shared dofs. Collective if M is."""


def _unseen(iteration: int, residual: float, target: float) -> None:
    """Show it to nobody."""


class StoppingCriterion(Struct, frozen=True):
    """When to stop."""

    tolerance: float = 1e-6  # on |r|_2
    relative: bool = False  # tolerance times |f|
    max_iterations: int = 10_000
    fixed: int = 0  # > 0: exactly this many iterations, whatever the residual
    show: Show = _unseen  # is told now and then how far a solve is: iteration (-1: ended), |r|, target

    def target(self, norm_f: float) -> float:
        """|r| at which to stop; 0 for fixed work."""
        if self.fixed:
            return 0.0
        return self.tolerance * norm_f if self.relative else self.tolerance

    @property
    def limit(self) -> int:
        return self.fixed or self.max_iterations


def _nothing() -> I64:
    return np.zeros(len(NAMES), np.int64)


class CGResult(Struct, frozen=True):
    """Outcome of one solve. Non-convergence is a result, not an exception."""

    x: F64  # (3 * n_active,), a view of the solver's own vector
    iterations: int
    residuals: tuple[float, ...]  # |r_k| by recurrence, k = 0 … iterations
    target: float
    converged: bool
    outside: I64 = field(default_factory=_nothing)  # (n_phases,) spans before the iterations


class Solver(Protocol):
    """One rank's matrix and preconditioner with a way to solve."""

    @property
    def operator(self) -> Operator:
        """The rank's matrix."""

    @property
    def work(self) -> Work:
        """Of one iteration, without its product with A."""

    def solve(self, f: F64, control: StoppingCriterion, record: int = 0) -> CGResult:
        """Solve A x = f from x = 0; f (3 * n_active,): the rank's
        load, unsummed. Collective."""


class Recurrence(Protocol):
    """One recurrence of the conjugate-gradient iteration."""

    x: F64
    outside: I64  # (n_phases,) spans that belong to no iteration

    def iterations(self, f: F64) -> Iterator[float]:
        """Yield <r, r> for x = 0, then after each iteration, until it is 0. Collective."""


def iterate(
    method: Recurrence, tracer: TracerLike, f: F64, control: StoppingCriterion, record: int
) -> CGResult:
    """Iterate until the residual is small enough or the limit is reached. Collective.

    Fixed work ends early when the residual is zero or rounding leaves no further
    step. A recording tracer records `record` iterations and is then switched off.
    Raises BreakdownError on every rank alike (all scalars come from all-reduces) if A
    or M is not positive definite.
    """
    tracer.iteration = -1
    tracer.begin(CG)
    before = tracer.counts()
    iterations = method.iterations(f)
    residual = sqrt(next(iterations))
    method.outside = tracer.counts() - before
    residuals = [residual]
    target = control.target(residual)
    if record == 0:
        tracer.recording = False
    tracer.iteration = 0
    step, due = max(1, BETWEEN_SHOWS // max(len(f), 1)), 1
    try:
        for k, rr in zip(range(1, control.limit + 1), iterations):
            residual = sqrt(rr)
            residuals.append(residual)
            if residual <= target:  # M10
                break
            tracer.iteration = k
            if k == due:  # at every step, and when the trace ends
                control.show(k, residual, target)
                tracer.recording = tracer.recording and k < record
                due = k + step if k >= record else min(k + step, record)
    except BreakdownError:
        if not exhausted(residuals):
            raise
    del iterations  # frees its memory within the span of the solve
    result = CGResult(
        x=np.asarray(method.x),  # of a device: a copy
        iterations=len(residuals) - 1,
        residuals=tuple(residuals),
        target=target,
        converged=residual <= target,
        outside=method.outside,
    )
    tracer.end(CG)
    tracer.iteration = -1
    control.show(-1, residual, target)
    return result


def exhausted(residuals: Sequence[float]) -> bool:
    """Whether a solve converged so far that a breakdown says nothing about A or M."""
    return bool(residuals) and min(residuals) <= ROUNDING * residuals[0]


def breakdown(name: str, value: float, iteration: int) -> BreakdownError:
    """The error to raise when a number that must be positive is not."""
    return BreakdownError(
        f"{name} = {value:.3e} at iteration {iteration}; expected > 0: is the mesh restrained?"
    )


def bind_product(
    A: Operator, interface: Interface, d: F64, q: F64, tracer: TracerLike, overlap: bool
) -> Callable[[], float | None]:
    """A call: q = A d, summed over sharers; with `overlap`, messages travel meanwhile.

    It returns d . (A_local d) if the product is fused, else None. The sum of these over
    ranks is <d, q>, so shared dofs need no weights. Collective.
    """
    product, update = A.bind(d, q), interface.bind(q, tracer)
    at_interface, inside = (SPMV_INTERFACE, product.interface), (SPMV_INTERIOR, product.interior)  # M2, M1
    if overlap:
        return chain(tracer, at_interface, update.send, inside, *update.receive)  # M3 around M1
    return chain(tracer, at_interface, inside, update.send, *update.receive)
