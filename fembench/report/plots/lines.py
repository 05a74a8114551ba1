"""Curves: speedup, weak scaling, efficiency factors, communication, residuals."""

import itertools
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from fembench.report import measures
from fembench.report.factors import EfficiencyFactors
from fembench.report.plots import canvas, charts, findings
from fembench.report.plots.canvas import Axes, Plot
from fembench.report.plots.charts import Curves, Series
from fembench.report.results import Result, by_series, unfit
from fembench.report.speedup import SUPERLINEAR, Speedup, all_speedups
from fembench.report.weak import ITERATION, WeakPoint

T = TypeVar("T")
CURVES = 16  # in one figure
POINTS = 500  # of a residual curve
TIPS = 24  # of a residual curve
PANELS = 4  # of factors, in one figure


def curve_looks(names: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Colour by mesh, marker and dashes by method, so that a reader can follow either."""
    meshes = list(dict.fromkeys(mesh for mesh, _ in names))
    others = list(dict.fromkeys(other for _, other in names))
    dashes = ("-", "--", ":", "-.")
    return [
        {
            "color": canvas.CYCLE[meshes.index(mesh) % len(canvas.CYCLE)],
            "marker": canvas.MARKERS[others.index(other) % len(canvas.MARKERS)],
            "linestyle": dashes[others.index(other) % len(dashes)],
            "label": canvas.escaped(mesh if len(others) == 1 else f"{mesh} · {other}"),
        }
        for mesh, other in names
    ]


def _styled(found: Sequence[tuple[Result, T, Result | None]]) -> list[tuple[dict[str, Any], list[T]]]:
    """(look, items) by mesh, method and placement of their results; the last is a result's base."""
    groups: dict[tuple[str, str], list[tuple[Result, T, Result | None]]] = {}
    for one in found:
        rest = " · ".join(w for w in (one[0].method, one[0].placement) if w)
        groups.setdefault((one[0].mesh, rest), []).append(one)
    looks = curve_looks(list(groups))
    for look, group in zip(looks, groups.values()):
        look["label"] += _marks([(result, base) for result, _, base in group])
    return [(look, [item for _, item, _ in group]) for look, group in zip(looks, groups.values())][:CURVES]


def _marks(found: Sequence[tuple[Result, Result | None]]) -> str:
    """' · DISTURBED: ranks 2, 4' for the name of a curve of results with their bases, or ""."""
    ranks: dict[str, list[str]] = {}
    for result, base in found:
        for word in unfit(result, base or result):
            ranks.setdefault(word, []).append(str(result.ranks))
    return "".join(f" · {word}: ranks {', '.join(numbers)}" for word, numbers in ranks.items())


def speedups(results: Sequence[Result], base: int = 0) -> Plot | None:
    """Speedup and efficiency of CG against ranks, with the ideal."""
    found = [s for s in all_speedups(results, base=base) if np.isfinite(s.ratio)]
    if not found:
        return None
    styled = _styled([(s.result, s, s.base) for s in found])
    drawn = [_speedup_curves(look, group) for look, group in styled]
    one = {s.base.ranks for s in found if s.base} == {1}
    known = [s.efficiency for s in found if np.isfinite(s.efficiency)]
    top = 1.1 * max([1.0, *known])
    definition = "T(1) / T(P)" if one else "P0 T(P0) / T(P)"
    return charts.curves(
        "speedup",
        "Speedup and efficiency of cg against ranks",
        "The first point of each curve is the base: this code on one rank (or on the fewest, P0), with "
        "the same mesh, problem, storage and preconditioner on the same kind of host. Times are those "
        "of the slowest rank. Error bars show the ranges of the table. The dashed line is perfect use "
        f"of P equal ranks. A point in the {canvas.NAMED[canvas.YELLOW]} band (above {SUPERLINEAR}) is "
        "super-linear; the table says whether caches or saved work explain it. Efficiency is left out if "
        "ranks are unequal or share cores.",
        [
            Curves("", f"speedup of CG, {definition}, log scale", [left for left, _ in drawn]),
            Curves("", "efficiency, speedup / P", [right for _, right in drawn], top, line=1.0),
        ],
        finding=findings.of_speedups(found),
        adjust=_ideal,
    )


def _ideal(axes_of: Sequence[Axes]) -> None:
    """The diagonal of equal ranks, both axes logarithmic; the super-linear band."""
    left, right = axes_of
    ends = left.dataLim.x0, left.dataLim.x1
    left.plot(ends, ends, color=canvas.GREY, linestyle="--", linewidth=1.2, label="ideal", zorder=1)
    canvas.plain_log(left, "y", left.dataLim.intervaly)
    left.autoscale(axis="y")
    right.axhspan(SUPERLINEAR, 100, color=canvas.YELLOW, alpha=0.18, linewidth=0)


def _speedup_curves(look: dict[str, Any], group: Sequence[Speedup]) -> tuple[Series, Series]:
    start = sorted({s.base.ranks for s in group if s.base})  # the base: a speedup of P0 on P0 ranks
    ranks = start + [s.result.ranks for s in group]
    ends = [(float(n),) * 3 for n in start] + [(s.ratio, s.low, s.high) for s in group]
    ratios = np.array(ends).T  # the ratio and the ends of its range
    known = np.isfinite([s.efficiency for s in group])
    shown = np.append([known.any()] * len(start), known).astype(bool)
    return Series(ranks, ratios, look), Series(ranks, np.where(shown, ratios / ranks, np.nan), look)


def communication(results: Sequence[Result]) -> Plot | None:
    """Share of communication in CG against ranks."""
    timed = [(r, r, None) for r in results if measures.CG in r.times and r.ranks > 1]
    if not timed:
        return None
    made: list[Series] = []
    shares: list[tuple[Result, float]] = []
    for look, group in _styled(timed):
        found = [measures.communication(r.runs) for r in group]
        ends = np.array([(c.share, c.by_rank.min(), c.by_rank.max()) for c in found])
        made.append(Series([r.ranks for r in group], 100 * ends.T, look))
        shares += [(r, c.share) for r, c in zip(group, found)]
    return charts.curves(
        "communication",
        "Share of communication in CG",
        "Messages (send, unpack) and waiting (wait, all-reduce) together over the CG time, both as means "
        "over ranks; the bar shows the range over ranks. The share grows with the number of ranks and is "
        "largest for small meshes, which have little to compute between two messages. A long bar means "
        "uneven load: the fast ranks wait.",
        [Curves("", "communication / CG, %", made, top=100)],
        height=4.0,
        finding=findings.of_communication(shares),
    )


def weak_scaling(found: Sequence[WeakPoint]) -> Plot | None:
    """One curve per series."""
    series: dict[str, list[WeakPoint]] = {}
    for p in found:
        series.setdefault(p.series, []).append(p)
    shown = list(series.items())[-CURVES:]
    if not shown:
        return None
    longest = max(p.times[ITERATION].median for _, group in shown for p in group)
    factor, unit = canvas.seconds_scale(longest)
    left, right = [], []
    names = [(name + _marks([(p.result, p.base) for p in group]), "") for name, group in shown]
    for look, (_, group) in zip(curve_looks(names), shown):
        ranks = [p.result.ranks for p in group]
        took = [p.times[ITERATION] for p in group]
        times = np.array([(t.median, t.low, t.high) for t in took])
        left.append(Series(ranks, factor * times.T, look))
        values = np.array([p.efficiency.get(ITERATION, (np.nan,) * 3) for p in group])
        right.append(Series(ranks, values.T, look))
    highest = max(float(np.nanmax(c.ends[2], initial=1.0)) for c in right)
    return charts.curves(
        "weak",
        "Weak scaling: constant size per rank",
        "Runs whose equations per rank differ by less than 10 %. Left: time of one iteration of cg on "
        "the slowest rank, with its 95 % interval; a flat line is perfect. Right: its efficiency over "
        "the smallest number of ranks, with the range of the table. A drop at few ranks of one host "
        "means that cores share memory bandwidth; a drop from host to host means messages or waiting. "
        "Efficiency is left out where ranks are unequal or share cores.",
        [
            Curves("", f"iteration of cg, {unit}", left),
            Curves("", "efficiency", right, top=max(1.1, 1.05 * min(highest, 2.0)), line=1.0),
        ],
        finding=findings.of_weak(shown[-1][1]),
    )


FACTORS: dict[str, tuple[str, dict[str, Any]]] = {  # label -> (attribute, look)
    "global": ("overall", {"color": canvas.BLACK, "marker": "o", "linewidth": 2.6}),
    "parallel": ("parallel", {"color": canvas.BLUE, "marker": "s"}),
    "load balance": ("load_balance", {"color": canvas.GREEN, "marker": "^", "linestyle": "--"}),
    "serialization": ("serialization", {"color": canvas.VERMILION, "marker": "v", "linestyle": "--"}),
    "transfer": ("transfer", {"color": canvas.ORANGE, "marker": "D", "linestyle": "--"}),
    "computation scaling": ("scaling", {"color": canvas.PINK, "marker": "P", "linestyle": ":"}),
}


def factors(found: Sequence[EfficiencyFactors]) -> Plot | None:
    """The largest meshes that ran on several numbers of ranks, with default shares."""
    series: dict[str, list[EfficiencyFactors]] = {}
    for f in found:
        if not f.result.placement and np.isfinite(f.parallel):
            series.setdefault(" · ".join(f.result.series), []).append(f)
    shown = [item for item in series.items() if len(item[1]) > 1][-PANELS:]
    if not shown:
        return None
    panels = [
        Curves(
            name + _marks([(f.result, f.base) for f in group]),
            "efficiency",
            [_factor(group, *line) for line in FACTORS.items()],
            line=1.0,
        )
        for name, group in shown
    ]
    return charts.curves(
        "speedup_factors",
        f"Efficiency factors of {measures.SOLVE} against ranks",
        "The lowest factor (broken lines) shows where efficiency is lost; full lines are products of "
        "factors. Global (the thick line) is parallel x computation scaling; parallel (blue) is load balance "
        "x serialization x transfer. 1 is perfect. The factors are those of POP, a European centre for "
        "Performance Optimisation and Productivity. Lines of serialization and transfer are missing where a "
        "run was not traced, and that of computation scaling where ranks are unequal.",
        panels,
        columns=3,
        height=3.6,
        finding=findings.of_factors(shown[-1][1]),
    )


def _factor(group: Sequence[EfficiencyFactors], label: str, line: tuple[str, dict[str, Any]]) -> Series:
    name, look = line
    values = [getattr(f, name) for f in group]
    return Series([f.result.ranks for f in group], np.array([values] * 3), {"label": label, **look})


DASHED = " The dashed line is the residual at which CG stops."
FIXED = " Runs of a fixed number of iterations stop after these."


def residuals(results: Sequence[Result]) -> Plot | None:
    """|r_k| against k for every mesh and method, on the fewest and on the most ranks."""
    groups = {k: g for k, g in by_series(results).items() if len(g[0].record.solve.residuals) > 1}
    if not groups:
        return None
    with canvas.figure(1, height=4.2) as (drawn, (axes,)):
        for look, group in zip(curve_looks(list(groups)), list(groups.values())[:CURVES]):
            few, many = _ends(group)
            _history(axes, few, {**look, "marker": ""})
            if many is not few:
                _history(axes, many, {"color": look["color"], "marker": "o", "linestyle": ""}, sparse=True)
        targets = {r.record.solve.target for r in results if r.record.solve.target > 0}
        fixed = any(r.pool.case.stop.iterations for group in groups.values() for r in group)
        for target in itertools.islice(sorted(targets), 3):
            axes.axhline(target, color=canvas.GREY, linestyle="--", linewidth=1.2)
        axes.set_yscale("log")
        axes.set_xlabel("iteration")
        axes.set_ylabel("norm of the residual, N")
        canvas.legend_below(drawn, axes)
        return canvas.plot(
            drawn,
            "residuals",
            "Residual history",
            "The residual of CG (from its recurrence) at each iteration: lines for the fewest ranks, dots "
            "for the most. Dots on the line show that the parallel run computes the same iterates."
            + DASHED * bool(targets)
            + FIXED * fixed,
            findings.of_residuals(*_ends(list(groups.values())[-1])),
        )


def _ends(group: Sequence[Result]) -> tuple[Result, Result]:
    """The results on the fewest and on the most ranks."""
    return min(group, key=lambda r: r.ranks), max(group, key=lambda r: r.ranks)


def _history(axes: Axes, result: Result, look: dict[str, Any], *, sparse: bool = False) -> None:
    values = np.array(result.record.solve.residuals)
    step = -(-len(values) // (24 if sparse else POINTS))
    last = len(values) - 1
    k = np.unique(np.append(np.arange(0, last, step), last))
    positive = k[values[k] > 0]
    axes.plot(positive, values[positive], **look)
    if not sparse:
        apart = -(-len(positive) // TIPS)
        for i in positive[::apart]:
            text = f"{look['label']}\niteration {i}: {values[i]:.3g} N"
            canvas.point_tip(axes, i, values[i], text)
