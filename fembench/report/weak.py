"""Weak scaling: more ranks with as many equations each, ideally in the same time.

    n      equations per rank: within 10 % of each other in one series
    P0     ranks of the base: the fewest of the series, or what the user asked for
    E      t(P0) / t(P) x n(P) / n(P0), of one time on the slowest rank; 1 is perfect

CG needs more iterations for more equations, so the time to a solution grows even on a
perfect machine. The time of one iteration shows the machine alone.
"""

import dataclasses
from collections.abc import Sequence
from statistics import median

import numpy as np

from fembench.base import units
from fembench.report.bases import RANGE, SIZE, caveats, difference, fastest, ratio_range
from fembench.report.equality import equality, unequal_ranks
from fembench.report.laws import SAME_SIZE
from fembench.report.measures import ASSEMBLY, CG, PRODUCT, SOLVE, VECTORS, Time
from fembench.report.results import Result
from fembench.report.speedup import Speedup
from fembench.report.table import Rows, declared

ITERATION = "iteration"
BY_ITERATION = {ITERATION: CG, PRODUCT: PRODUCT, VECTORS: VECTORS}  # times of one iteration
QUANTITIES = (ASSEMBLY, PRODUCT, VECTORS, ITERATION, CG, SOLVE)


@dataclasses.dataclass(frozen=True, slots=True)
class WeakPoint:
    """One result of a series, compared with its base."""

    series: str  # method and equations per rank, from the fewest to the most
    result: Result
    base: Result
    times: dict[str, Time]  # by quantity; of an iteration where BY_ITERATION says so
    efficiency: dict[str, tuple[float, float, float]]  # E and its 95 % interval, by quantity
    notes: tuple[str, ...]


def weak_points(found: Sequence[Result], base: int = 0) -> list[WeakPoint]:
    """Every result of every series, those of one series together, by ranks.

    `base`: ranks of the base; the fewest of a series if it has no run on this number.
    """
    return [
        _point(r, _base(series, base), series, found)
        for series in weak_series(found)
        for r in sorted(series, key=lambda r: (r.ranks, r.mesh))
    ]


def strong(speedups: Sequence[Speedup], weak: Sequence[WeakPoint]) -> list[Speedup]:
    """Those with a base, and those of runs that weak scaling does not compare either."""
    compared = {point.result.record.id for point in weak}
    return [s for s in speedups if s.base or s.result.record.id not in compared]


def weak_series(found: Sequence[Result]) -> list[list[Result]]:
    """Results of one method with nearly equal equations per rank, on two or more P."""
    usable = [r for r in found if r.pool.status != "INVALID" and ITERATION in weak_times(r)]
    made: list[list[Result]] = []
    for r in sorted(usable, key=per_rank):
        home = next((s for s in made if _belongs(s, r)), None)
        if home is None:
            made.append([r])
        else:
            home.append(r)
    series = [_one_mesh(s) for s in made if len({r.ranks for r in s}) > 1]
    return sorted(series, key=lambda s: (s[0].method, per_rank(s[0])))


def _one_mesh(series: Sequence[Result]) -> list[Result]:
    """A series with one mesh on each P: that nearest to the typical size per rank."""
    typical = median(per_rank(r) for r in series)
    nearest: dict[int, Result] = {}
    for r in sorted(series, key=lambda r: abs(per_rank(r) - typical)):
        nearest.setdefault(r.ranks, r)
    return [r for r in series if r.mesh == nearest[r.ranks].mesh]


def per_rank(result: Result) -> float:
    """Equations per rank."""
    return result.record.mesh.n_equations / result.ranks


def _belongs(series: Sequence[Result], r: Result) -> bool:
    """Whether a result continues a series: of its size per rank, not of its mesh."""
    first = series[0].record
    grown = all(r.mesh != other.mesh or r.ranks == other.ranks for other in series)
    alike = first.mesh.element == r.record.mesh.element and difference(first, r.record, SIZE) is None
    return grown and alike and per_rank(r) <= SAME_SIZE * per_rank(series[0])


def _base(series: Sequence[Result], asked: int) -> Result:
    """The fastest result on the fewest ranks, or on as many as were asked for."""
    fewest = asked if any(r.ranks == asked for r in series) else min(r.ranks for r in series)
    return fastest((r for r in series if r.ranks == fewest), CG) or series[0]


def _point(result: Result, base: Result, series: Sequence[Result], everyone: Sequence[Result]) -> WeakPoint:
    mine, alone = weak_times(result), weak_times(base)
    withheld = unequal_ranks(result.record, everyone)
    e = {q: _efficiency(alone[q], mine[q], result, base) for q in QUANTITIES if q in mine and q in alone}
    return WeakPoint(
        series=f"{series[0].method}, {_sizes(series)} equations per rank",
        result=result,
        base=base,
        times=mine,
        efficiency={} if withheld else e,
        notes=tuple(_notes(result, base, withheld or equality(result.record, everyone).remark)),
    )


def weak_times(result: Result) -> dict[str, Time]:
    """Times by quantity, of those that took any."""
    iterations = result.record.solve.iterations
    timed = {name: t for name, t in result.times.items() if t.median > 0}
    each = BY_ITERATION if iterations else {}
    found = {q: _scaled(timed[k], iterations) for q, k in each.items() if k in timed}
    return found | {q: timed[q] for q in (ASSEMBLY, CG, SOLVE) if q in timed}


def _scaled(whole: Time, iterations: int) -> Time:
    """A time of one iteration from that of all."""
    return dataclasses.replace(
        whole,
        median=whole.median / iterations,
        low=whole.low / iterations,
        high=whole.high / iterations,
        medians=tuple(m / iterations for m in whole.medians),
        within=tuple((low / iterations, high / iterations) for low, high in whole.within),
        minimum=whole.minimum / iterations,
        mean=whole.mean / iterations,
    )


def _sizes(series: Sequence[Result]) -> str:
    """'630', or '630 to 682' if they differ."""
    sizes = sorted(map(per_rank, series))
    return " to ".join(dict.fromkeys(units.count(size) for size in (sizes[0], sizes[-1])))


def _efficiency(alone: Time, mine: Time, result: Result, base: Result) -> tuple[float, float, float]:
    """With the ends of its interval; larger parts than those of the base may take longer."""
    more = per_rank(result) / per_rank(base)
    low, high = (1.0, 1.0) if base is result else ratio_range(alone, mine)
    return more * alone.median / mine.median, more * low, more * high


def _notes(result: Result, base: Result, equal: str) -> list[str]:
    notes = [equal] if equal and result is not base else []
    return notes + caveats(result, base)


NOTE = (
    "Series whose equations per rank differ by less than 10 %, computed in the same way on more and more "
    "ranks. Efficiency is t(P0) / t(P) x n(P) / n(P0), with times t on the slowest rank and n equations per "
    "rank; P0 is the smallest number of ranks of the series. 1 is perfect: twice the ranks solve twice the "
    "system in the same time. "
)
PLACE = (
    "method; equations_per_rank equations series: equations / rank | >{0:count}; "
    "ranks setting: ranks | {1}; hosts; mesh"
)


@declared(
    "weak",
    "Weak scaling",
    f"{NOTE}The time is that of one iteration of cg, by which machines can be compared: a larger system "
    f"needs more iterations on any machine. {RANGE.strip()}",
    PLACE,
    "iterations; iteration_s; iteration_efficiency: efficiency | .3f",
    "iteration_low iteration_high: range | .3f; base_runs; runs; remarks",
)
def weak_table(found: Sequence[WeakPoint]) -> Rows:
    """One row per result of a series."""
    return [
        (*_place(p), p.result.record.solve.iterations, p.times[ITERATION].median, *_shown(p, ITERATION))
        + (p.base.times[CG].runs, p.result.times[CG].runs, "; ".join(p.notes))
        for p in found
    ]


@declared(
    "weak_phases",
    "Weak scaling by phase",
    "Series, efficiency and range are those of the table before. Iteration, product and vectors are "
    "times of one iteration of cg; product and vectors are its computing parts. The efficiencies of cg "
    "and of assembly + cg also count the additional iterations that a larger system needs.",
    PLACE,
    "phase; time_s; efficiency | .3f; phase_low phase_high: range | .3f",
)
def weak_phases(found: Sequence[WeakPoint]) -> Rows:
    """One row per result and phase."""
    return [
        (*_place(p), name, p.times[name].median, *_shown(p, name))
        for p in found
        if p.base is not p.result
        for name in QUANTITIES
        if name in p.times
    ]


def _place(p: WeakPoint) -> tuple[object, ...]:
    r = p.result
    size = per_rank(r), r.record.mesh.n_equations, p.series
    return r.method, size, (r.ranks, r.setting), r.hosts, r.mesh


def _shown(p: WeakPoint, name: str) -> tuple[float, tuple[float, ...]]:
    value, low, high = p.efficiency.get(name, (np.nan,) * 3)
    return value, ((np.nan,) * 2 if p.base is p.result else (low, high))
