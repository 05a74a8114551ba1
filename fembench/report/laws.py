"""Laws of speedup: Amdahl's at a fixed size, Gustafson's at sizes that grow with the ranks.

Both use the best speedup over one rank (times of assembly and CG) for each P, and
need three different P, including one rank. For unequal ranks, P is P_eq, their number
in units of the fastest rank.
"""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from fembench.report.results import unfit
from fembench.report.speedup import Speedup
from fembench.report.table import Rows, declared
from fembench.report.unequal import Unequal
from fembench.weights.scaling import FEWEST, ScalingFit, amdahl_fraction, fit_amdahl, fit_gustafson

SAME_SIZE = 1.1  # numbers of cells per rank that differ by a smaller factor count as equal


@dataclasses.dataclass(frozen=True, slots=True)
class SpeedupLaw:
    """One law fitted to the speedups of one series."""

    series: tuple[str, str]  # mesh, or cells per rank; method
    processors: tuple[float, ...]  # P, or P_eq
    speedups: tuple[float, ...]
    fit: ScalingFit


def amdahl_laws(speedups: Sequence[Speedup], unequal: Sequence[Unequal]) -> list[SpeedupLaw]:
    """Amdahl's law for each mesh and method."""
    points = [(s.result.series, float(s.result.ranks), s.ratio) for s in speedups if _counts(s)]
    points += [
        (u.result.series, u.equivalent, u.fastest[0])
        for u in unequal
        if u.alone and np.isfinite(u.equivalent) and _fastest_alone(u)
        if not unfit(u.result, *u.alone.values())
    ]
    return [SpeedupLaw(series, p, s, fit_amdahl(p, s)) for series, p, s in _series(points)]


def gustafson_laws(speedups: Sequence[Speedup]) -> list[SpeedupLaw]:
    """Gustafson's law by method and cells per rank, from meshes that grow with P."""
    points: list[tuple[tuple[str, str], float, float]] = []
    size = 0.0
    counted = [s for s in speedups if _counts(s)]
    for s in sorted(counted, key=lambda s: (s.result.method, _cells_a_rank(s))):
        new = not points or points[-1][0][1] != s.result.method or _cells_a_rank(s) > SAME_SIZE * size
        size = _cells_a_rank(s) if new else size
        points.append(((f"{size:.0f}", s.result.method), float(s.result.ranks), s.ratio))
    return [SpeedupLaw(series, p, s, fit_gustafson(p, s)) for series, p, s in _series(points)]


def _cells_a_rank(s: Speedup) -> float:
    return s.result.record.mesh.n_cells / s.result.ranks


def _counts(s: Speedup) -> bool:
    """Whether the base is one rank, no ranks are known to be unequal, and nothing was DISTURBED."""
    alone = s.base is not None and s.base.ranks == 1 and not unfit(s.base, s.result)
    return bool(np.isfinite(s.efficiency)) and alone


def _fastest_alone(u: Unequal) -> bool:
    """Whether the host of the fastest rank was measured alone."""
    return u.speeds is not None and u.hosts[int(u.speeds.argmax())] in u.alone


def _series(
    points: Iterable[tuple[tuple[str, str], float, float]],
) -> Iterable[tuple[tuple[str, str], tuple[float, ...], tuple[float, ...]]]:
    """(series, P, S) with the best S for each P, of series with enough different P."""
    best: dict[tuple[str, str], dict[float, float]] = {}
    for series, processors, s in points:
        found = best.setdefault(series, {})
        key = round(processors, 6)
        found[key] = max(s, found.get(key, 0.0))
    for series, found in best.items():
        if len({1.0, *found}) >= FEWEST:
            yield series, tuple(sorted(found)), tuple(found[p] for p in sorted(found))


@declared(
    "speedup_laws",
    "Speedup by the laws of Amdahl and Gustafson",
    "Amdahl: S = 1 / (f + (1 - f) / P), fitted to the best speedup of each mesh for each P, from the times "
    "of assembly + CG. Here f is the sequential fraction of the one-rank time, and 1/f the limit of the "
    "speedup. On unequal ranks, P is their number in units of the fastest rank (P_eq). Gustafson: "
    "S = g + (1 - g) P, fitted to speedups of meshes that grow with the number of ranks (cells per rank "
    "within 10 %), each over one rank on the same mesh; g is the sequential fraction of the parallel time, "
    "and Amdahl's f gives the same speedup at the largest P. 'Fit error' is the largest relative error of "
    "the fit. A fit needs three different P, including one rank; DISTURBED runs do not count. If speedups "
    "are super-linear or below 1, no law holds and no fraction is given.",
    "law; mesh; method; points; largest_p: largest P",
    "sequential: f or g | .4f; off_fraction: fit error; amdahl_f: Amdahl's f | .6f",
    "amdahl_limit: limit 1/f | .3g; remarks",
)
def laws_table(amdahl: Sequence[SpeedupLaw], gustafson: Sequence[SpeedupLaw]) -> Rows:
    """One row per law and series: the sequential fraction, and how well it fits."""
    for name, laws in (("Amdahl", amdahl), ("Gustafson", gustafson)):
        for law in laws:
            first, method = law.series
            grown = name == "Gustafson"
            largest = max(law.processors)
            where = f"{first} cells per rank" if grown else first
            fraction, off = np.nan, np.nan
            if not law.fit.fails:
                fraction = max(law.fit.fraction, 0.0)
                off = law.fit.worst
            f = amdahl_fraction(fraction, largest) if grown else fraction
            yield (
                (name, where, method, len({1.0, *law.processors}), largest, fraction, off)
                + (f, 1 / f if f > 0 else np.nan, law.fit.fails)
            )
