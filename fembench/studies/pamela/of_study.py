"""The closed form from a machine profile: what `fembench predict --method analytic` answers.

Computing is priced as the simulation prices it (profile's speeds at each rank's size and company); the
intervals hold nine of ten of the profile's visits. Messages cost what the profile's network says: overheads
keep the rank, gaps its host's network interface; both beside the product where the run overlaps them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fembench.base.errors import InputError
from fembench.mesh.mesh import Mesh
from fembench.mesh.presets import resolve
from fembench.model.cg import Price, inside_product, prices
from fembench.model.forecast import as_in_runs
from fembench.model.interval import TimeRange, shortest_window, total
from fembench.model.machine import Machine
from fembench.model.predictor import Predictor
from fembench.model.rates import Rates
from fembench.model.slots import Slot
from fembench.model.workload import Workload, workload
from fembench.records.case import Case
from fembench.studies.pamela.bounds import Compose
from fembench.studies.pamela.fem import FemCosts, FemPrediction, predict_fem
from fembench.studies.pamela.history import PERCENT

REDUCED = 8  # bytes of an all-reduce


@dataclass(frozen=True)
class Lessons:
    """What runs on the machine teach the closed form about an iteration."""

    scale: float = 1.0  # measured over predicted
    wide: float = 0.0  # logarithm of half the interval that is to hold nine runs of ten; 0: not known


NOTHING_LEARNED = Lessons()


def predict_case(
    study: Predictor,
    case: Case,
    iterations: int,
    *,
    mesh: Mesh | None = None,
    compose: Compose = "phase",
    lessons: Lessons = NOTHING_LEARNED,
) -> FemPrediction:
    """Interval, expression and terms of assembly and `iterations` iterations. Raises InputError."""
    return predict_work(study, partitioned(study, case, mesh), iterations, compose, lessons)


def predict_work(
    study: Predictor,
    work: Workload,
    iterations: int,
    compose: Compose = "phase",
    lessons: Lessons = NOTHING_LEARNED,
) -> FemPrediction:
    """The same of a workload. Raises InputError."""
    _check(work.case)
    slots, machine, _ = study.place(work.ranks)
    priced = prices(work, slots, study.rates, study.correction)
    machine = as_in_runs(machine, slots, study.correction)
    costs = costs_of(work, slots, study.rates, priced, machine, lessons)
    return predict_fem(costs, iterations, compose=compose)


def _check(case: Case) -> None:
    """Raises InputError for what has no term in the closed form."""
    plain = case.precond in ("none", "jacobi", "block-jacobi") and case.variant != "pipelined"
    if not plain or case.solver != "own":
        raise InputError(
            f"solver {case.solver}, precond {case.precond}, variant {case.variant} in closed form: expected "
            "solver own, precond none, jacobi or block-jacobi, variant standard or single-reduction; "
            "the simulation knows the others"
        )


def partitioned(study: Predictor, case: Case, mesh: Mesh | None = None) -> Workload:
    """The parts of a run, balanced shares found first. Raises InputError."""
    mesh = resolve(case.mesh) if mesh is None else mesh
    return workload(study.settled(case, mesh, study.slots(case.ranks)), mesh)


def costs_of(
    work: Workload,
    slots: Sequence[Slot],
    rates: Rates,
    priced: Sequence[Price],
    machine: Machine,
    lessons: Lessons = NOTHING_LEARNED,
) -> FemCosts:
    """Intervals of each rank's assembly, product, updates and messages."""
    ranks, parts, sizes = range(work.ranks), work.parts, work.product_units()

    def spread(name: str, units: Sequence[float], seconds: Sequence[float]) -> list[TimeRange]:
        visits = (rates.spread(slots[r].rank, name, units[r]) for r in ranks)
        return [shortest_window((t / ratios).tolist(), PERCENT) for t, ratios in zip(seconds, visits)]

    def corrected(cost: TimeRange) -> TimeRange:
        return _corrected(cost, lessons)

    updates = spread("updates", parts.dofs, [p.updates for p in priced])
    inside = [inside_product(work, priced[r], r) for r in ranks]
    overheads = [
        _overheads(work, machine, r, inside[r]) + priced[r].loop + sum(priced[r].pack) for r in ranks
    ]
    product = spread(f"product {work.case.storage}", sizes, [p.product for p in priced])
    return FemCosts(
        assembly=spread("assembly", parts.cells, [p.assembly for p in priced]),
        product=[corrected(p) for p in product],
        updates=[corrected(total((u, o))) for u, o in zip(updates, overheads)],
        halo=[corrected(_gaps(work, machine, r)) for r in ranks],
        latency=[corrected(_latency(work, machine, r)) for r in ranks],
        allreduce=corrected(_allreduce(machine)),
        host=machine.host,
        cores=[max(machine.host.count(h), 1) for h in range(len(machine.names))],  # company is in the prices
        overlap=work.case.overlap,
        sums=1 if work.case.variant == "single-reduction" else 2,
    )


def _corrected(cost: TimeRange, lessons: Lessons) -> TimeRange:
    """A cost as runs say it is; how far runs were off takes the place of the profile's visits."""
    if not lessons.wide:
        return cost * lessons.scale
    middle, factor = cost.middle * lessons.scale, math.exp(lessons.wide)
    return TimeRange(middle / factor, middle * factor)


def _overheads(work: Workload, machine: Machine, rank: int, inside: float) -> float:
    """Seconds that a rank's own sends and receives keep it in one iteration, and those that they cost the
    `inside` seconds which it computes meanwhile."""
    there = (machine.cost(rank, q, m).send for q, m in work.exchange(rank))
    return sum(there) + sum(sum(machine.beside(q, rank, m, inside)) for q, m in work.exchange(rank))


def _gaps(work: Workload, machine: Machine, rank: int) -> TimeRange:
    """Seconds that its messages keep its host's network interface."""
    seconds = sum(machine.gap(rank, q, m) for q, m in work.exchange(rank))
    return TimeRange(seconds, seconds)


def _latency(work: Workload, machine: Machine, rank: int) -> TimeRange:
    """Seconds until the last message that it waits for is there."""
    seconds = max((machine.exchanged(q, rank, m, m).latency for q, m in work.exchange(rank)), default=0.0)
    return TimeRange(max(seconds, 0.0), max(seconds, 0.0))


def _allreduce(machine: Machine) -> TimeRange:
    """Recursive doubling of 8 bytes: in each stage the slowest pair."""
    n, seconds = machine.ranks, 0.0
    for k in range(math.ceil(math.log2(n)) if n > 1 else 0):
        pairs = [(r, r ^ (1 << k)) for r in range(n) if r ^ (1 << k) < n]
        seconds += max((machine.cost(a, b, REDUCED).total for a, b in pairs), default=0.0)
    return TimeRange(machine.collective * seconds, machine.collective * seconds)
