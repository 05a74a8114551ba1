"""The events of a rank in an iteration: its method's steps as computing and messages.

A product consists of the interface rows, the messages to all neighbours, the interior
rows, the wait, and the sum. A product inside a preconditioner sends messages too, and
so does each grid of multigrid, whose messages are a quarter of those of the grid above;
rank 0 receives one sum, works on the small grids, and broadcasts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fembench.methods.steps import (
    DOUBLE,
    Application,
    CoarseCorrection,
    Gathering,
    Multiplication,
    Pass,
    Reduction,
)
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
    """The neighbour sums of an application on all ranks' grids, as Workload.exchange."""
    grids = range(1, 1 + len(work.grids[0]))
    times = work.recipe.precond_products + 1  # each product, and the restricted residual
    return [exchange for k in grids for exchange in [_on_grid(work.exchange(rank), k)] * times]


def _on_grid(exchange: list[tuple[int, int]], k: int) -> list[tuple[int, int]]:
    """A neighbour sum of the mesh on the k-th grid below it."""
    return [(q, max(m // 4**k, 3 * DOUBLE)) for q, m in exchange]


class _Rank:
    """The program of one rank."""

    def __init__(self, work: Workload, rank: int, price: Price) -> None:
        self._work = work
        self._rank = rank
        self._price = price
        self._recipe = work.recipe
        self._outer = work.interface_part(rank)
        self._exchange = work.exchange(rank)
        self._dofs = float(work.parts.dofs[rank])
        self._levels = [(price.precond, price.precond_product), *price.grids]

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

    def _application(self, grid: int = 0) -> Iterator[Event]:
        """The preconditioner on the mesh, or on a grid below it: its passes over
        vectors, its products with their messages, its gathering, and the next grid."""
        passes, product = self._levels[grid]
        part = min(1.0, 2**grid * self._outer)
        exchange = _on_grid(self._exchange, grid) if grid else self._exchange
        for step in self._recipe.application:
            if isinstance(step, Pass):
                share = self._recipe.cost(step).vectors / self._recipe.applied.vectors
                yield Compute(PRECOND, share * passes, "dofs", self._dofs / 8**grid)
            elif isinstance(step, Multiplication):
                yield Compute(PRECOND, part * product)
                yield from self._messages([Compute(PRECOND, (1 - part) * product)], exchange)
            elif isinstance(step, Gathering):
                yield Collective("allgather", DOUBLE * step.numbers, ALLREDUCE)
            elif isinstance(step, CoarseCorrection):
                yield from self._below(grid + 1)

    def _below(self, grid: int) -> Iterator[Event]:
        """The residual and the application on a grid of all ranks, or on those of rank 0."""
        if grid < len(self._levels):
            yield from self._messages([], _on_grid(self._exchange, grid))
            yield from self._application(grid)
        else:
            m = 3 * DOUBLE * round(self._work.grids[1][0])
            yield Collective("reduce", m, ALLREDUCE)
            yield Compute(PRECOND, self._price.small)
            yield Collective("bcast", m, ALLREDUCE)

    def _reduction(self, step: Reduction) -> Iterator[Event]:
        whole = Collective("allreduce", DOUBLE * step.numbers, ALLREDUCE)
        if step.part == "whole":
            yield whole
        else:
            begun, ended = halves(whole, self._rank, self._work.ranks)
            yield from begun if step.part == "begin" else ended

    def _product(self) -> Iterator[Event]:
        case = self._work.case
        price = self._price
        part = self._outer
        units = self._work.product_units()[self._rank]
        seconds = price.products * price.product
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
        """Messages to and from all neighbours (by default those of a product), with the
        events of `meanwhile` before the wait."""
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
