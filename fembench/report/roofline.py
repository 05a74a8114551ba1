"""Roofline of the phases: flops per second against flops per byte, and bandwidth.

    I      flops / bytes of a phase, both counted, from the arrays that it touches
    F      flops per second while the phase runs, sum over ranks
    roof   I times the bandwidth that the ranks reached together, measured in the same run: each core counts
           once, and ranks that take turns on cores have none

Source: S. Williams, A. Waterman and D. Patterson, Roofline: an insightful visual
performance model for multicore architectures, Comm. ACM 52 (2009) 65-76. There is no
horizontal roof: a record has no measured peak of arithmetic.
"""

import dataclasses
from collections.abc import Iterable

import numpy as np

from fembench.base.arrays import F64
from fembench.base.errors import InputError
from fembench.methods.recipe import Recipe, recipe
from fembench.records.binding import (
    cpus_at_once,
    held_in,
    oversubscribed,
    partly_cached,
    ranks_of_machines,
    taking_turns,
)
from fembench.records.phases import PRODUCT_PARTS, VECTOR_PARTS
from fembench.records.record import Record
from fembench.report import measures
from fembench.report.measures import PRODUCT, VECTORS, over_runs
from fembench.report.results import CASE, Result, case_of
from fembench.report.table import Rows, declared

ITERATION = "iteration"
PARTS = {PRODUCT: PRODUCT_PARTS, VECTORS: VECTOR_PARTS}


@dataclasses.dataclass(frozen=True, slots=True)
class RooflinePoint:
    """One phase of one result; sums over ranks."""

    result: Result
    phase: str
    flops: float  # of one iteration
    bytes: float
    flop_rate: float  # per second
    byte_rate: float
    roof: float  # bytes per second; nan if none was measured, or ranks share cores
    why: str = ""  # why there is no roof

    @property
    def intensity(self) -> float:
        """Flops per byte."""
        return self.flops / self.bytes

    @property
    def of_roof(self) -> float:
        return self.byte_rate / self.roof


def roofline_points(found: Iterable[Result]) -> list[RooflinePoint]:
    """Product, vectors and whole iteration of each result whose work was counted."""
    return [
        point
        for r in found
        if r.pool.status != "INVALID" and measures.CG in r.times and r.record.solve.iterations
        for point in _points(r)
    ]


def product_point(result: Result) -> RooflinePoint | None:
    """The point of its product, else of the whole iteration; None if no work was counted."""
    points = {p.phase: p for p in roofline_points([result])}
    return points.get(PRODUCT) or points.get(ITERATION)


def _points(result: Result) -> list[RooflinePoint]:
    whole = np.array([result.record.solve.flops, result.record.solve.bytes])  # (2, P)
    if not whole.all():
        return []
    roof, why = _roof(result)
    seconds = result.times[measures.CG].median / result.record.solve.iterations
    made = []
    for name, work in phase_works(result.record).items():
        spent = _seconds(result, name)
        if spent.all():
            made.append((name, work.sum(axis=1), (work / spent).sum(axis=1)))
    total = whole.sum(axis=1)
    made.append((ITERATION, total, total / seconds))
    return [_point(result, name, work, rates, roof, why) for name, work, rates in made]


def _point(result: Result, phase: str, work: F64, rates: F64, roof: float, why: str) -> RooflinePoint:
    """A point from (2,) flops and bytes, and their rates."""
    (flops, n_bytes), (flop_rate, byte_rate) = work.tolist(), rates.tolist()
    return RooflinePoint(result, phase, flops, n_bytes, flop_rate, byte_rate, roof, why)


def _seconds(result: Result, name: str) -> F64:
    """(n_ranks,) of a phase in one iteration."""
    parts = [one.each_iteration[:, :, PARTS[name]] for one in result.runs if len(one.each_iteration)]
    return over_runs([part.sum(axis=2) for part in parts])


def _roof(result: Result) -> tuple[float, str]:
    """(bytes per second of all ranks together, median over runs; why there is none).

    A rank's bandwidth is that of its core while it has it. It counts once per core,
    for the time that a quota leaves; where ranks take turns, it says nothing about
    the time that a product took.
    """
    environment = result.record.environment
    if oversubscribed(environment) or taking_turns(environment):
        return np.nan, f"withheld: {taking_turns(environment) or 'OVERSUBSCRIBED'}"
    roofs = [_together(r) for r in result.pool.records if r.solve.bandwidth]
    return (float(np.median(roofs)), "") if roofs else (np.nan, "not available: no bandwidth was measured")


def _together(record: Record) -> float:
    each = record.solve.bandwidth
    environment = record.environment
    return sum(
        cpus_at_once(environment, ranks) * float(np.mean([each[rank] for rank in ranks]))
        for ranks in ranks_of_machines(environment)
    )


def phase_works(record: Record) -> dict[str, F64]:
    """phase -> (2, P) flops and bytes of one iteration; {} where they cannot be divided.

    The passes over vectors follow from the method and the unknowns; the rest is the
    product. The products of a preconditioner are timed, and counted, with the vectors.
    """
    one = _recipe(record)
    if one is None:
        return {}
    whole = np.array([record.solve.flops, record.solve.bytes])
    each = one.counted(1)
    passes = np.outer([each.flops, each.bytes], record.partition.dofs)
    product = (whole - passes) / (one.products + one.precond_products)
    if (product <= 0).any():
        return {}
    return {PRODUCT: one.products * product, VECTORS: passes + one.precond_products * product}


def _recipe(record: Record) -> Recipe | None:
    """The steps of an iteration; None if their cost is not known, or not in a record."""
    try:
        one = recipe(record.case.method)
    except InputError:
        return None
    return None if one.precond.coarse or one.precond.grids else one


NOTE = (
    "Flops and bytes of one iteration of cg are counted from the arrays that each phase touches, not read "
    "from hardware counters; sums over ranks. Rates of product and vectors are those while the phase runs; "
    "the rate of the whole iteration includes waiting and messages. The roof is the bandwidth that the ranks "
    "reached together in the same run, over as many bytes as their matrices have, with each core counted "
    "once: that of a cache if one holds the matrices, and none if ranks take turns on cores. Near 100 %, "
    "only less data or more bandwidth makes the phase faster; above, its data were in caches that the "
    "bandwidth test did not use. Assembly is missing "
    "because its flops are not counted, and there is no roof of arithmetic because its peak is not measured."
)


@declared(
    "roofline",
    "Roofline",
    NOTE,
    CASE,
    "phase; flops: flops / iteration | .3g; touched_bytes: bytes / iteration",
    "intensity: flops / byte | .3f; gflop_per_s: Gflop/s | .2f; gb_per_s: GB/s | .2f",
    "roof_gb_per_s: roof, GB/s | .2f; of_roof_fraction; remarks",
)
def roofline_table(found: Iterable[RooflinePoint]) -> Rows:
    """One row per result and phase."""
    return [
        (*case_of(p.result), p.phase, p.flops, p.bytes, p.intensity, p.flop_rate / 1e9, p.byte_rate / 1e9)
        + (p.roof / 1e9, p.of_roof, _remark(p))
        for p in found
    ]


def _remark(p: RooflinePoint) -> str:
    if p.why:
        return f"roof {p.why}"
    level = held_in(p.result.record)
    part = "L3 holds a part of the matrix" if partly_cached(p.result.record) else ""
    return f"cache: {level} holds the matrix" if level else part
