"""The execution graph of CG on a workload, each event priced: solve/cg.py as messages and seconds.

    iteration   axpy (direction), product at the interface, messages to all neighbours, product inside,
                wait, all-reduce, axpy (step), all-reduce
    before      the load is summed over its sharers, then a step of length zero
    set         assembly, then the iterations

Of the vector updates the direction reads and writes three vectors, the step six: a third and two thirds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fembench.base.errors import InputError
from fembench.predict.graph import Collective, Compute, Event, Graph, Loop, Program, Receive, Send, Wait
from fembench.predict.rates import Rates
from fembench.predict.slots import Slot, company
from fembench.predict.workload import Workload
from fembench.timing.phases import (
    ALLREDUCE,
    ASSEMBLY,
    AXPY,
    CG,
    NAMES,
    SEND,
    SPMV_INTERFACE,
    SPMV_INTERIOR,
    UNPACK,
    WAIT,
)

DIRECTION = 1 / 3  # of the vector updates' time
SCALARS = {
    "none": 1,
    "jacobi": 2,
    "block-jacobi": 2,
}  # in the second all-reduce; D^-1 is folded into the step
MEASURED = 9  # vectors that the profile's updates read and write
VECTORS = {"standard": 9, "single-reduction": 10}
DIAGONAL = {"none": 0, "jacobi": 2, "block-jacobi": 4}  # vectors' worth of D^-1, read twice


@dataclass(frozen=True)
class Price:
    """Seconds of one rank for each part of the work."""

    assembly: float
    product: float
    updates: float  # of an iteration
    loop: float = 0.0  # of an iteration, that no phase accounts for
    pack: tuple[float, float] = (0.0, 0.0)  # of an iteration, beside MPI's own: packing, summing


@dataclass(frozen=True)
class Factor:
    """value x (units / middle)^slope; beyond the sizes that taught it as at their ends."""

    value: float = 1.0
    slope: float = 0.0
    middle: float = 1.0  # units
    low: float = 0.0
    high: float = math.inf

    def at(self, units: float) -> float:
        """The factor for so many units."""
        return self.value * (min(max(units, self.low), self.high) / self.middle) ** self.slope


@dataclass(frozen=True)
class Correction:
    """What runs on the same machine taught: factors on what the profile says, and what it cannot know."""

    assembly: Factor = Factor()
    product: Factor = Factor()
    updates: Factor = Factor()
    loop: float = 0.0  # seconds of an iteration
    pack: tuple[float, float] = (0.0, 0.0)  # seconds a byte: packing, summing
    scale: float = 1.0  # on the whole iteration: interruptions of one rank at a time hold up all
    errors: tuple[float, ...] = ()  # log(measured / predicted) an iteration of each run that taught it


def prices(
    work: Workload, slots: Sequence[Slot], rates: Rates, correction: Correction | None = None
) -> list[Price]:
    """[rank] from the profile's speeds at each rank's own size and company. Raises InputError."""
    check_supported(work)
    c = correction or Correction()
    vectors = (VECTORS[work.case.variant] + DIAGONAL[work.case.precond]) / MEASURED
    together, blocks = company(slots), work.blocks()
    return [
        Price(
            assembly=c.assembly.at(work.parts.cells[r])
            * rates.seconds(s.rank, "assembly", work.parts.cells[r], together[r]),
            product=c.product.at(blocks[r])
            * rates.seconds(s.rank, f"product {work.case.storage}", blocks[r], together[r]),
            updates=c.updates.at(work.parts.dofs[r])
            * vectors
            * rates.seconds(s.rank, "updates", work.parts.dofs[r], together[r]),
            loop=c.loop,
            pack=(c.pack[0] * sum(work.parts.message_bytes[r]), c.pack[1] * sum(work.parts.message_bytes[r])),
        )
        for r, s in enumerate(slots)
    ]


def check_supported(work: Workload) -> None:
    """Raises InputError for runs that the profile says nothing of."""
    case = work.case
    if case.solver != "own" or case.precond not in SCALARS or case.variant not in VECTORS:
        raise InputError(
            f"solver {case.solver}, precond {case.precond}, variant {case.variant}: expected solver own, "
            f"precond {', '.join(SCALARS)}, variant {', '.join(VECTORS)}"
        )


def cg_graph(work: Workload, priced: Sequence[Price], iterations: int, *, assembly: bool = True) -> Graph:
    """One set: assembly, then so many iterations."""
    programs = []
    for rank, price in enumerate(priced):
        before: list[Event] = [Compute(ASSEMBLY, price.assembly, "cells", work.parts.cells[rank])]
        if not assembly:
            before = []
        body = tuple(_iteration(work, rank, price))
        programs.append((*before, Loop(iterations, body)))
    case = work.case
    return Graph(
        phases=NAMES,
        programs=tuple(programs),
        source=f"{case.mesh}, {work.ranks} ranks, shares {case.shares or 'equal'}, {case.storage}",
        mesh_hash=work.mesh_hash,
        iterations=iterations,
    )


def _iteration(work: Workload, rank: int, price: Price) -> Program:
    case, parts = work.case, work.parts
    blocks, outer = work.blocks()[rank], work.interface_part(rank)
    exchange = list(zip(parts.neighbours[rank], parts.message_bytes[rank]))
    interface = Compute(SPMV_INTERFACE, outer * price.product, "blocks", outer * blocks)
    inside = Compute(SPMV_INTERIOR, (1 - outer) * price.product, "blocks", (1 - outer) * blocks)
    receives: Program = tuple(Receive(q, m, SEND) for q, m in exchange)
    sends: Program = (Compute(SEND, price.pack[0]), *(Send(q, m, SEND) for q, m in exchange))
    finish: Program = (Wait(WAIT), Compute(UNPACK, price.pack[1]))
    dofs = parts.dofs[rank]
    direction = Compute(AXPY, DIRECTION * price.updates, "dofs", DIRECTION * dofs)
    step = Compute(AXPY, (1 - DIRECTION) * price.updates, "dofs", (1 - DIRECTION) * dofs)
    loop = Compute(CG, price.loop)
    product: list[Event] = [interface, *receives, *sends, inside, *finish]
    if not case.overlap:
        product = [interface, inside, *receives, *sends, *finish]
    if not exchange:
        product = [interface, inside]
    sums: list[Event] = [Collective("allreduce", 8, ALLREDUCE)]
    last: list[Event] = [Collective("allreduce", 8 * SCALARS[case.precond], ALLREDUCE)]
    if case.variant == "single-reduction":
        sums, last = [], [Collective("allreduce", 8 * (1 + SCALARS[case.precond]), ALLREDUCE)]
    return tuple(
        e
        for e in (direction, *product, *sums, step, *last, loop)
        if not (isinstance(e, Compute) and e.seconds == 0)
    )
