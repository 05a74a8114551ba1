"""Costs of a FEM run per unit of work, as intervals, from the sets of a record; and those of another run.

The sets of a record are the history. What a rank waits for others is no cost: of halo and all-reduce the
least over ranks is taken, of the rank that came last and waited for nobody.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fembench.base.errors import InputError
from fembench.model.interval import TimeRange, shortest_window
from fembench.records.record import PartitionFacts, Record, SetTimes
from fembench.studies.pamela.fem import FemCosts
from fembench.studies.pamela.history import PERCENT

PRODUCT = ("cg.spmv_interior", "cg.spmv_interface")
UPDATES = ("cg.dot", "cg.axpy", "cg.precond")
HALO = ("cg.send", "cg.wait", "cg.unpack")


@dataclass(frozen=True)
class UnitCosts:
    """Seconds of one unit on each rank's host."""

    assembly: tuple[TimeRange, ...]  # (P,) a cell
    product: tuple[TimeRange, ...]  # a block
    updates: tuple[TimeRange, ...]  # a dof
    halo: TimeRange  # a neighbour
    allreduce: TimeRange
    host: tuple[int, ...]
    cores: tuple[int, ...]


def unit_costs(record: Record, percent: float = PERCENT) -> UnitCosts:
    """Costs of what a record's ranks did. Raises InputError where no set was timed."""
    sets = [s for s in record.sets if not s.warmup and s.iterations]
    if not sets:
        raise InputError(f"{record.id}: no timed set with iterations in it")
    ranks, part = range(record.case.ranks), record.partition

    def spent(names: Sequence[str], rank: int, s: SetTimes) -> float:
        return sum(s.seconds[rank][record.phases.index(n)] for n in names)

    def each(units: Sequence[int], seconds: Callable[[int, SetTimes], float]) -> tuple[TimeRange, ...]:
        return tuple(shortest_window([seconds(r, s) / units[r] for s in sets], percent) for r in ranks)

    reductions = max(record.solve.allreduces, 1)
    neighbours = [max(len(n), 1) for n in part.neighbours]
    environment = record.environment
    return UnitCosts(
        assembly=each(part.cells, lambda r, s: spent(("assembly",), r, s)),
        product=each(part.blocks, lambda r, s: spent(PRODUCT, r, s) / s.iterations),
        updates=each(part.dofs, lambda r, s: spent(UPDATES, r, s) / s.iterations),
        halo=shortest_window(
            [min(spent(HALO, r, s) / s.iterations / neighbours[r] for r in ranks) for s in sets], percent
        ),
        allreduce=shortest_window(
            [min(spent(("cg.allreduce",), r, s) / s.iterations / reductions for r in ranks) for s in sets],
            percent,
        ),
        host=environment.rank_host,
        cores=tuple(h.cores for h in environment.hosts),
    )


def priced(units: UnitCosts, part: PartitionFacts) -> FemCosts:
    """Costs of another partition on the same ranks. Raises InputError where their number differs."""
    if len(part.cells) != len(units.host):
        raise InputError(f"partition of {len(part.cells)} parts; costs are known of {len(units.host)} ranks")
    return FemCosts(
        assembly=[c * n for c, n in zip(units.assembly, part.cells)],
        product=[c * n for c, n in zip(units.product, part.blocks)],
        updates=[c * n for c, n in zip(units.updates, part.dofs)],
        halo=[units.halo * len(n) for n in part.neighbours],
        allreduce=units.allreduce,
        host=units.host,
        # the record was made with its ranks in company: what they share is in their costs already
        cores=tuple(max(c, units.host.count(h)) for h, c in enumerate(units.cores)),
    )
