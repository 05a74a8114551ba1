"""What one iteration of a combination of storage, preconditioner and recurrence consists of.

The solver counts its work from it, and the model prices it: both
read the same declarations.
"""

import functools
from collections.abc import Iterable

from msgspec import Struct

from fembench.base.errors import InputError
from fembench.methods.lookup import Combination, MethodChoice, precond_of, recurrence_of, storage_of
from fembench.methods.preconditioners import PreconditionerMethod
from fembench.methods.recurrences import RecurrenceMethod
from fembench.methods.steps import (
    DOUBLE,
    NO_WORK,
    Application,
    Gathering,
    Multiplication,
    Pass,
    Reduction,
    Step,
    Work,
)


class Recipe(Struct, frozen=True, dict=True):
    """One iteration, step by step. Works are per entry of a vector."""

    recurrence: RecurrenceMethod
    precond: PreconditionerMethod
    steps: tuple[Step, ...]  # Multiplication.dot is a pass, or flops alone

    def cost(self, step: Pass) -> Work:
        """Of one pass."""
        return step.work(self.precond.inverse)

    @functools.cached_property
    def application(self) -> tuple[Step, ...]:
        """The steps of one application of M; none where M^-1 is folded in."""
        return self.precond.application or () if Application() in self.steps else ()

    @functools.cached_property
    def updates(self) -> Work:
        """Passes that write vectors."""
        return self._sum(s for s in self.steps if isinstance(s, Pass) and s.writes)

    @functools.cached_property
    def dots(self) -> Work:
        """Inner products."""
        return self._sum(s for s in self.steps if isinstance(s, Pass) and not s.writes)

    @functools.cached_property
    def applied(self) -> Work:
        """One application of M, its products apart."""
        return self._sum(s for s in self.application if isinstance(s, Pass))

    @property
    def applications(self) -> float:
        """Of M, residual replacements included."""
        if Application() not in self.steps:
            return 0.0
        return 1.0 + self._replaced(self.recurrence.replace_applications)

    @property
    def products(self) -> float:
        """Outside of M, residual replacements included."""
        return 1.0 + self._replaced(self.recurrence.replace_products)

    @property
    def precond_products(self) -> int:
        """In one application of M."""
        return sum(isinstance(s, Multiplication) for s in self.application)

    @property
    def exchanges(self) -> float:
        """Neighbour sums: one with every product."""
        return self.products + self.precond_products

    @property
    def reductions(self) -> tuple[int, ...]:
        """Numbers in each all-reduce."""
        return tuple(s.numbers for s in self.steps if isinstance(s, Reduction) and s.part != "end")

    @property
    def gathered(self) -> int:
        """Numbers per rank in the all-gathers of one application of M."""
        return sum(s.numbers for s in self.application if isinstance(s, Gathering))

    def grids(self, equations: float, dofs: float) -> tuple[list[float], list[float]]:
        """Grids.below of a mesh and a part of these sizes, if any."""
        grids = self.precond.grids
        return grids.below(equations / 3, dofs / 3) if grids else ([], [])

    def on_grids(self, equations: float, dofs: float) -> Work:
        """One application on the grids below a mesh, rank 0's too, for a part's dofs."""
        if self.precond.grids is None:
            return NO_WORK
        shared, (*small, last) = self.grids(equations, dofs)
        nodes = sum(shared) + sum(small)
        product = self.precond.grids.product
        smoothed = self.applied * (3 * nodes) + product * (nodes * self.precond_products)
        return smoothed + Work(2, DOUBLE) * (3 * last) ** 2

    def counted(self, n: int, product: Work = NO_WORK, extra: Work = NO_WORK) -> Work:
        """One iteration on a rank with n entries per vector; `extra`: of M, beyond its steps.

        The product of the iteration itself and residual replacement are left out;
        `product` is the work of a product inside M.
        """
        vectors = (self.updates + self.dots + self.applied) * n
        return vectors + product * self.precond_products + extra

    def _sum(self, passes: Iterable[Pass]) -> Work:
        return sum(map(self.cost, passes), Work())

    def _replaced(self, times: int) -> float:
        return times / self.recurrence.replace if self.recurrence.replace else 0.0


def recipe(choice: MethodChoice) -> Recipe:
    """The recipe of a choice. Raises InputError for an unknown method or cost."""
    storage = storage_of(choice.storage)
    precond = precond_of(choice.precond)
    recurrence = recurrence_of(choice.recurrence, choice.solver)
    if precond.application is None:
        raise InputError(f"precond {precond.name}: the cost of an application is not known")
    if precond.identity:
        steps = recurrence.plain
    else:
        steps = recurrence.folded if precond.folds and recurrence.folded else recurrence.applied
    resolved = (r for s in steps for r in _with_dot(s, storage.fused))
    return Recipe(recurrence, precond, tuple(resolved))


def _with_dot(step: Step, fused: bool) -> tuple[Step, ...]:
    """The step; of a product with <d, q> the inner product after it."""
    if not isinstance(step, Multiplication) or not step.dot:
        return (step,)
    return Multiplication(), Pass("" if fused else "d q", flops=2)


PLAIN = recipe(Combination())  # whose updates a machine profile measures
