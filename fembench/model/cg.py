"""The execution graph of CG for a workload, with each event
priced by the profile's speeds.

The iterations are those of iteration.py; recipe.py counts their parts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.methods.lookup import CPU, Combination, product_name
from fembench.methods.recipe import PLAIN, Recipe
from fembench.model.graph import ExecutionGraph, Loop
from fembench.model.iteration import events_of
from fembench.model.rates import Rates, beside_others
from fembench.model.slots import Slot, company, on_hosts
from fembench.model.workload import Workload
from fembench.records.case import Case
from fembench.records.phases import IN_GRAPHS

OF_GRIDS = Combination(storage="sym")  # the storage of their matrices


@dataclass(frozen=True)
class Price:
    """Seconds of one rank for each part of the work."""

    assembly: float
    product: float  # of one product
    updates: float  # per iteration
    loop: float = 0.0  # per iteration, outside all phases
    pack: tuple[float, float] = (0.0, 0.0)  # packing, summing per exchange
    dot: float = 0.0  # per iteration, inner products in separate passes
    precond: float = 0.0  # per iteration, passes of the preconditioner over vectors
    precond_product: float = 0.0  # of one product of the preconditioner
    precond_products: int = 0
    products: float = 1.0  # number of products per iteration
    grids: tuple[tuple[float, float], ...] = ()  # on each grid of all ranks: passes, one product of M
    small: float = 0.0  # per iteration, grids on rank 0

    @property
    def computing(self) -> float:
        """Seconds per iteration of all work on vectors and matrix."""
        return self.products * self.product + self.updates + self.dot + self.preconditioning

    @property
    def preconditioning(self) -> float:
        """Seconds per iteration of the preconditioner with its products."""
        on_grids = sum(passes + self.precond_products * product for passes, product in self.grids)
        return self.precond + self.precond_products * self.precond_product + on_grids + self.small


@dataclass(frozen=True)
class Power:
    """The function (x / middle)^slope, constant below low and above high."""

    slope: float = 0.0
    middle: float = 1.0
    low: float = 0.0
    high: float = math.inf

    def at(self, x: float) -> float:
        return (min(max(x, self.low), self.high) / self.middle) ** self.slope


@dataclass(frozen=True)
class Factor:
    """Measured over predicted time, as a function of the size of a rank's part and of
    the number of ranks on its host, which share its caches. Constant outside the range
    of sizes to which it was fitted."""

    value: float = 1.0
    size: Power = Power()
    company: Power = Power()

    def at(self, units: float, together: int) -> float:
        """The factor for `units` with `together` ranks on the host."""
        return self.value * self.size.at(units) * self.company.at(together)


@dataclass(frozen=True)
class Correction:
    """A correction fitted to runs: factors on the profile's prices, and costs not in it."""

    assembly: Factor = Factor()
    product: Factor = Factor()
    updates: Factor = Factor()
    precond: Factor = Factor()
    loop: Factor = Factor(0.0)  # seconds per iteration, by the units of all ranks of the host
    pack: tuple[float, float] = (0.0, 0.0)  # seconds per byte: packing, summing
    reduce: Factor = Factor()  # on all-reduces: in a run, ranks may sleep and caches are cold
    scale: float = 1.0  # on the whole iteration: an interruption of one rank delays all
    errors: tuple[tuple[float, ...], ...] = ()  # log(measured / predicted), cross-validated
    solver: str = "own"  # of those runs


def prices(
    work: Workload,
    slots: Sequence[Slot],
    rates: Rates,
    correction: Correction | None = None,
    together: Sequence[int] = (),
) -> list[Price]:
    """[rank] prices from the profile's speeds, at the size of the rank's part and while
    up to together[rank] ranks of its host compute (default: all of them). Raises
    InputError for a run that has no price."""
    check_supported(work, correction)
    check_devices(work, slots, rates)
    c, one = correction or Correction(), work.recipe
    together = together or company(slots)
    sizes = work.product_units()
    name = product_name(work.case.method)
    stretch, parts = stretched_by(work, rates), work.parts
    whole = on_hosts(slots, parts.dofs)
    assembly = beside_others(rates, slots, "assembly", parts.cells, together)
    products = beside_others(rates, slots, name, sizes, together)
    updates = beside_others(rates, slots, "updates", parts.dofs, together)
    found = []
    for r, s in enumerate(slots):
        dofs, k = parts.dofs[r], together[r]
        product = stretch * products[r]
        vector = stretch * updates[r] / PLAIN.updates.vectors
        n_bytes = sum(parts.message_bytes[r])
        on_m = c.precond.at(dofs, k)
        grids, small = _on_grids(work, r, s, rates, k)
        found.append(
            Price(
                assembly=c.assembly.at(parts.cells[r], k) * stretch * assembly[r],
                product=c.product.at(sizes[r], k) * product,
                updates=c.updates.at(dofs, k) * one.updates.vectors * vector,
                loop=c.loop.at(whole[r], k),
                pack=_copies(c, rates, s.rank, n_bytes, k),
                dot=c.updates.at(dofs, k) * one.dots.vectors * vector,
                precond=on_m
                * one.applications
                * (one.applied.vectors + _coarse_vectors(one, work, r))
                * vector,
                precond_product=on_m * product if one.precond_products else 0.0,
                precond_products=one.precond_products,
                products=one.products,
                grids=tuple((on_m * stretch * a, on_m * stretch * b) for a, b in grids),
                small=on_m * stretch * small,
            )
        )
    return found


def _copies(
    c: Correction,
    rates: Rates,
    rank: int,
    n_bytes: float,
    together: int,
) -> tuple[float, float]:
    """Seconds of packing and of summing; on a device, copied between its memory and the host's."""
    if rates.device(rank) == CPU:
        return c.pack[0] * n_bytes, c.pack[1] * n_bytes
    return (
        rates.seconds(rank, "pack", n_bytes, together),
        rates.seconds(rank, "unpack", n_bytes, together),
    )


def check_devices(work: Workload, slots: Sequence[Slot], rates: Rates) -> None:
    """Raises InputError unless each rank's place was measured on what the rank computes on."""
    for rank, (kind, slot) in enumerate(zip(work.case.devices, slots)):
        if (known := rates.device(slot.rank)) != kind:
            raise InputError(
                f"rank {rank} computes on {kind}, the profile has {known} in its place: expected device = "
                f"{','.join(rates.devices)}, or a profile of characterize --device {work.case.method.device}"
            )


def inside_product(work: Workload, price: Price, rank: int) -> float:
    """Seconds per iteration in which a rank computes while its messages travel."""
    part = 1 - work.interface_part(rank) if work.case.method.overlap else 0.0
    return part * price.products * price.product


def stretched_by(work: Workload, rates: Rates) -> float:
    """The factor `dilate` of the case over that of the profile; 1 if it has none."""
    return work.case.synthetic.dilate / rates.dilate if work.case.synthetic.dilate != 1 else 1.0


def check_supported(work: Workload, correction: Correction | None = None) -> None:
    """Raises InputError for a run that has no price."""
    check_priced(work.case)
    if work.case.method.petsc_options:
        raise InputError(
            f"petsc_options '{work.case.method.petsc_options}': the cost of PETSc options is not known; "
            "expected no options"
        )
    if work.case.method.solver == "petsc" and (correction is None or correction.solver != "petsc"):
        raise InputError(
            "solver petsc: the profile has no speeds of PETSc; expected learn = RECORDS of runs with "
            "solver petsc on this machine"
        )


def check_priced(case: Case) -> None:
    """Raises InputError for what no profile or execution graph models."""
    if case.placement.threads > 1:
        raise InputError(
            f"threads = {case.placement.threads}: a profile has speeds of one thread per rank; expected 1"
        )
    if case.method.exchange == "blocking":
        raise InputError("exchange blocking cannot be predicted; expected exchange nonblocking")


def cg_graph(work: Workload, priced: Sequence[Price], iterations: int) -> ExecutionGraph:
    """The graph of the iterations of one set."""
    programs = [(Loop(iterations, events_of(work, rank, price)),) for rank, price in enumerate(priced)]
    case = work.case
    return ExecutionGraph(
        phases=IN_GRAPHS,
        programs=tuple(programs),
        source=f"{case.question.mesh}, {plural(work.ranks, 'rank')}, shares "
        f"{case.placement.shares or 'equal'}, {case.method.storage}",
        mesh_hash=work.mesh_hash,
        iterations=iterations,
    )


def _coarse_vectors(one: Recipe, work: Workload, rank: int) -> float:
    """The entries of a rank's coarse matrices, as a number of vectors. Assumes as many
    kinds of nodes as the interior and the neighbours (corners have more)."""
    kinds = 1 + len(work.parts.neighbours[rank])
    dofs = max(work.parts.dofs[rank], 1)
    return one.precond.coarse_entries(kinds, work.ranks) / dofs


def _on_grids(
    work: Workload, rank: int, slot: Slot, rates: Rates, together: int
) -> tuple[list[tuple[float, float]], float]:
    """(seconds of the passes and of one product on each grid that all ranks have, those
    of rank 0 on the small ones while the others wait).

    A block in single precision costs as much as in double:
    bytes matter little in a cache.
    """
    one, grids = work.recipe, work.recipe.precond.grids
    if grids is None:
        return [], 0.0
    shared, (*small, last) = one.grids(work.n_equations, work.parts.dofs[rank])

    def vectors(n: float, together: int) -> float:
        return rates.seconds(slot.rank, "updates", n, together) / PLAIN.updates.vectors

    def on(nodes: float, together: int) -> tuple[float, float]:
        passes = one.applications * one.applied.vectors * vectors(3 * nodes, together)
        return passes, rates.seconds(slot.rank, product_name(OF_GRIDS), nodes * grids.blocks, together)

    alone = sum(passes + one.precond_products * product for passes, product in (on(n, 1) for n in small))
    direct = vectors((3 * last) ** 2, 1)
    return [on(nodes, together) for nodes in shared], 0.0 if rank else alone + direct
