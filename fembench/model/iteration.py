"""The events of one rank in one iteration: the declared steps of its method as computing and messages.

A product consists of the interface rows, the messages to all neighbours, the interior rows, the wait, and the
sum. A product inside a preconditioner sends messages too, and so does each grid of multigrid: fewer nodes, an
eighth per grid in the volume and a quarter on interfaces, and in the end one sum and one broadcast of rank 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fembench.methods.preconditioners import SMALL_LEVEL, SMOOTHING_STEPS
from fembench.methods.steps import Application, Gathering, Multiplication, Pass, Reduction
from fembench.methods.work import DOUBLE
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


def events_of(work: Workload, rank: int, price: Price) -> Program:
    """The events of one rank in one iteration, without computing that takes no time."""
    found = _Rank(work, rank, price).iteration()
    return tuple(e for e in found if not (isinstance(e, Compute) and e.seconds == 0))


def coarse_exchanges(work: Workload, rank: int) -> list[list[tuple[int, int]]]:
    """The neighbour sums of multigrid's grids in one application, each as Workload.exchange. As on boxes of
    cubes: every grid has twice the spacing of the one above it."""
    found = []
    for k in range(1, coarse_grids(work)):
        each = [(q, max(m // 4**k, 3 * DOUBLE)) for q, m in work.exchange(rank)]
        found += [each] * (2 * SMOOTHING_STEPS + 1)  # each product, and the restricted residual
    return found


def coarse_grids(work: Workload) -> int:
    """Grids of multigrid down to the first one on rank 0; 0 for other preconditioners."""
    nodes, grids = work.n_equations / 3, 0
    if work.recipe.precond.coarse_per_dof:
        grids = 1
        while nodes / 8**grids > SMALL_LEVEL:
            grids += 1
    return grids


class _Rank:
    """The program of one rank."""

    def __init__(self, work: Workload, rank: int, price: Price) -> None:
        self._work, self._rank, self._price = work, rank, price
        self._recipe = work.recipe
        self._outer = work.interface_part(rank)
        self._exchange = work.exchange(rank)
        self._dofs = float(work.parts.dofs[rank])

    def iteration(self) -> Iterator[Event]:
        """The events of all declared steps, each with its part of the price."""
        one = self._recipe
        for step in one.steps:
            if isinstance(step, Pass) and step.writes:
                part = one.cost(step).vectors / one.updates.vectors
                yield Compute(AXPY, part * self._price.updates, "dofs", part * self._dofs)
            elif isinstance(step, Pass):
                part = one.cost(step).vectors / max(one.dots.vectors, 1)
                yield Compute(DOT, part * self._price.dot, "dofs", self._dofs)
            elif isinstance(step, Multiplication):
                yield from self._product()
            elif isinstance(step, Application):
                yield from self._application()
            elif isinstance(step, Reduction):
                yield from self._reduction(step)
        yield Compute(CG, self._price.loop)

    def _application(self) -> Iterator[Event]:
        """The preconditioner: its passes over vectors, its products with their messages, its gathering."""
        price, part = self._price, self._outer
        for step in self._recipe.application:
            if isinstance(step, Pass):
                share = self._recipe.cost(step).vectors / self._recipe.applied.vectors
                yield Compute(PRECOND, share * price.precond, "dofs", self._dofs)
            elif isinstance(step, Multiplication):
                yield Compute(PRECOND, part * price.precond_product)
                yield from self._messages([Compute(PRECOND, (1 - part) * price.precond_product)])
            elif isinstance(step, Gathering):
                yield Collective("allgather", DOUBLE * step.numbers, ALLREDUCE)
        for exchange in coarse_exchanges(self._work, self._rank):
            yield from self._messages([], exchange)
        if grids := coarse_grids(self._work):
            m = DOUBLE * round(self._work.n_equations / 8**grids)
            yield from (Collective("reduce", m, ALLREDUCE), Collective("bcast", m, ALLREDUCE))

    def _reduction(self, step: Reduction) -> Iterator[Event]:
        whole = Collective("allreduce", DOUBLE * step.numbers, ALLREDUCE)
        if step.part == "whole":
            yield whole
        else:
            begun, ended = halves(whole, self._rank, self._work.ranks)
            yield from begun if step.part == "begin" else ended

    def _product(self) -> Iterator[Event]:
        case, price, part = self._work.case, self._price, self._outer
        units, seconds = self._work.product_units()[self._rank], price.products * price.product
        unit = self._work.product_unit
        outer = Compute(SPMV_INTERFACE, part * seconds, unit, part * units)
        inside = Compute(SPMV_INTERIOR, (1 - part) * seconds, unit, (1 - part) * units)
        if case.method.solver == "petsc":  # own rows while the others' values travel
            whole = Compute(SPMV_INTERIOR, seconds, unit, units)
            yield from self._messages([whole])
        elif case.method.overlap:
            yield outer
            yield from self._messages([inside])
        else:
            yield from (outer, inside)
            yield from self._messages([])

    def _messages(
        self, meanwhile: list[Event], exchange: list[tuple[int, int]] | None = None
    ) -> Iterator[Event]:
        """Messages to and from all neighbours (by default those of a product), with the events of `meanwhile`
        before the wait."""
        exchange = exchange or self._exchange
        if not exchange:
            yield from meanwhile
            return
        part = sum(m for _, m in exchange) / sum(m for _, m in self._exchange)
        pack, unpack = (part * seconds for seconds in self._price.pack)
        yield from (Receive(q, m, SEND) for q, m in exchange)
        yield Compute(SEND, pack)
        yield from (Send(q, m, SEND) for q, m in exchange)
        yield from meanwhile
        yield Wait(WAIT, 0)  # does not wait for pending all-reduces
        yield Compute(UNPACK, unpack)
