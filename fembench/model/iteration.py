"""The events of one rank in one iteration: solve/cg.py and its variants as messages and seconds.

    standard           direction, product, all-reduce, step, [precond, dot], all-reduce
    single-reduction   all updates, [precond, dot], product, all-reduce
    pipelined          all-reduce begun, [precond], product, all-reduce ended, all updates
    PETSc              direction, product, dot, all-reduce, step, [precond], dot, all-reduce (two of them)

A product is its part at the interface, messages to all neighbours, its part inside, the wait, the sum. A
Chebyshev step has one too. Of the standard updates the direction takes a third (three vectors), the step the
rest (six).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fembench.model.collectives import halves
from fembench.model.graph import Collective, Compute, Event, Program, Receive, Send, Wait
from fembench.records.phases import (
    ALLREDUCE,
    AXPY,
    CG,
    DOT,
    PRECOND,
    SEND,
    SPMV_INTERFACE,
    SPMV_INTERIOR,
    UNPACK,
    WAIT,
)

if TYPE_CHECKING:
    from fembench.model.cg import Price
    from fembench.model.workload import Workload

DIRECTION = 1 / 3  # of the standard updates' time
DOUBLE = 8  # bytes
MOMENTS = 6  # numbers of a rank that the two-level preconditioner gathers


def events_of(work: Workload, rank: int, price: Price) -> Program:
    """One iteration of one rank; computing that takes no time is left out."""
    one = _Rank(work, rank, price)
    case = work.case
    if case.solver == "petsc":
        found = one.petsc()
    else:
        kinds = {"single-reduction": one.single_reduction, "pipelined": one.pipelined}
        found = kinds.get(case.variant, one.standard)()
    return tuple(e for e in found if not (isinstance(e, Compute) and e.seconds == 0))


class _Rank:
    """What one rank does."""

    def __init__(self, work: Workload, rank: int, price: Price) -> None:
        self._work, self._rank, self._price = work, rank, price
        self._outer = work.interface_part(rank)
        self._exchange = work.exchange(rank)
        self._sums = 1 if work.case.precond == "none" else 2  # numbers in the second all-reduce

    def standard(self) -> Iterator[Event]:
        yield self._updates(DIRECTION)
        yield from self._product()
        last = 2.0 if self._outer_precond and self._price.dots else 0.0  # vectors of <r, z>
        yield self._dot(self._price.dots - last)
        yield _sum(1)
        yield self._updates(1 - DIRECTION)
        yield from self._preconditioner()
        yield self._dot(last)
        yield _sum(self._sums)
        yield self._loop()

    def single_reduction(self) -> Iterator[Event]:
        yield self._updates(1.0)
        yield from self._preconditioner()
        yield from self._product()
        yield self._dot(self._price.dots)
        yield _sum(1 + self._sums)
        yield self._loop()

    def pipelined(self) -> Iterator[Event]:
        begun, ended = halves(_sum(1 + self._sums), self._rank, self._work.ranks)
        yield from begun
        yield from self._preconditioner()
        yield from self._product()
        yield from ended
        yield self._updates(1.0)
        yield self._loop()

    def petsc(self) -> Iterator[Event]:
        yield self._updates(DIRECTION)
        yield from self._product()
        yield self._dot(2.0)
        yield _sum(1)
        yield self._updates(1 - DIRECTION)
        yield from self._preconditioner()
        yield self._dot(self._price.dots - 2.0)
        yield from (_sum(1) for _ in range(self._sums))
        yield self._loop()

    @property
    def _outer_precond(self) -> bool:
        """Whether the preconditioner is applied beside the updates, so that <r, z> is a pass of its own."""
        return self._work.case.precond in ("chebyshev", "two-level")

    def _updates(self, part: float) -> Compute:
        dofs = self._work.parts.dofs[self._rank]
        return Compute(AXPY, part * self._price.updates, "dofs", part * dofs)

    def _dot(self, vectors: float) -> Compute:
        seconds = self._price.dot * vectors / self._price.dots if self._price.dots else 0.0
        return Compute(DOT, seconds, "dofs", float(self._work.parts.dofs[self._rank]))

    def _loop(self) -> Compute:
        return Compute(CG, self._price.loop)

    def _product(self) -> Iterator[Event]:
        case, price, part = self._work.case, self._price, self._outer
        units, seconds = self._work.product_units()[self._rank], price.products * price.product
        unit = self._work.product_unit
        outer = Compute(SPMV_INTERFACE, part * seconds, unit, part * units)
        inside = Compute(SPMV_INTERIOR, (1 - part) * seconds, unit, (1 - part) * units)
        if case.solver == "petsc":  # own rows while the others' values travel
            whole = Compute(SPMV_INTERIOR, seconds, unit, units)
            yield from self._messages([whole])
        elif case.overlap:
            yield outer
            yield from self._messages([inside])
        else:
            yield from (outer, inside)
            yield from self._messages([])

    def _messages(self, meanwhile: list[Event]) -> Iterator[Event]:
        """To and from all neighbours, with work between."""
        if not self._exchange:
            yield from meanwhile
            return
        pack, unpack = self._price.pack
        yield from (Receive(q, m, SEND) for q, m in self._exchange)
        yield Compute(SEND, pack)
        yield from (Send(q, m, SEND) for q, m in self._exchange)
        yield from meanwhile
        yield Wait(WAIT, 0)  # not for a sum that is under way
        yield Compute(UNPACK, unpack)

    def _preconditioner(self) -> Iterator[Event]:
        """Its passes over vectors; the products and messages of Chebyshev, the gathering of two levels."""
        case, price, part = self._work.case, self._price, self._outer
        dofs = float(self._work.parts.dofs[self._rank])
        if case.precond == "chebyshev":
            each = price.precond / (price.precond_products + 1)
            yield Compute(PRECOND, each, "dofs", dofs)
            for _ in range(price.precond_products):
                yield Compute(PRECOND, part * price.precond_product)
                yield from self._messages([Compute(PRECOND, (1 - part) * price.precond_product)])
                yield Compute(PRECOND, each, "dofs", dofs)
            return
        yield Compute(PRECOND, price.precond, "dofs", dofs)
        if case.precond == "two-level":
            yield Collective("allgather", MOMENTS * DOUBLE, ALLREDUCE)


def _sum(numbers: int) -> Collective:
    return Collective("allreduce", DOUBLE * numbers, ALLREDUCE)
