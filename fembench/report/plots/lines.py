"""Curves: speedup and efficiency, communication share, iterations, residuals."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fembench.report import measures
from fembench.report.plots import canvas
from fembench.report.plots.canvas import Axes, Plot
from fembench.report.results import Result, by_series
from fembench.report.speedup import SUPERLINEAR, Speedup, all_speedups

CURVES = 16  # in one figure
POINTS = 500  # of a residual curve


def speedups(results: Sequence[Result], base: int = 0) -> Plot | None:
    """Speedup and efficiency of CG against ranks, with the ideal."""
    found = [s for s in all_speedups(results, base=base) if np.isfinite(s.ratio)]
    if not found:
        return None
    ranks = [r.ranks for s in found for r in (s.result, s.base) if r]
    with canvas.figure(2, columns=2, height=4.4) as (drawn, (left, right)):
        ends = np.array([min(ranks), max(ranks)])
        left.plot(ends, ends, color=canvas.GREY, linestyle="--", linewidth=1.2, label="ideal")
        right.axhline(1.0, color=canvas.GREY, linestyle="--", linewidth=1.2)
        right.axhspan(SUPERLINEAR, 100, color=canvas.YELLOW, alpha=0.18, linewidth=0)
        for style, group in _styled(found):
            _speedup_curve(left, right, group, style)
        canvas.rank_axis(left, ranks)
        left.set_yscale("log", base=2)
        left.yaxis.set_major_formatter(lambda v, _: f"{v:g}" if v >= 1 else f"1/{1 / v:g}")
        canvas.rank_axis(right, ranks)
        top = max([1.1, *(1.1 * s.efficiency for s in found if np.isfinite(s.efficiency))])
        right.set_ylim(0, top)
        one = min(ranks) == max(s.base.ranks for s in found if s.base) == 1
        left.set_ylabel("speedup of CG, " + ("T(1) / T(P)" if one else "P0 T(P0) / T(P)"))
        right.set_ylabel("efficiency, speedup / P")
        canvas.legend_below(drawn, left)
        return canvas.plot(
            drawn,
            "speedup",
            "Speedup and efficiency of cg against ranks",
            "The first point of each curve is the base: this code on one rank (or on the fewest, P0), with "
            "the same mesh, problem, storage and preconditioner on the same kind of host. Times are those "
            "of the slowest rank. Error bars show the ranges of the table. The dashed line is perfect use "
            f"of P equal ranks. A point in the {canvas.NAMED[canvas.YELLOW]} band (above {SUPERLINEAR}) is "
            "super-linear; the table says whether caches or saved work explain it. Efficiency is left out if "
            "ranks are unequal or share cores.",
        )


def _styled(found: Iterable[Speedup]) -> list[tuple[dict[str, Any], list[Speedup]]]:
    """Curves by mesh, variant and placement."""
    curves: dict[tuple[str, ...], list[Speedup]] = {}
    for s in found:
        curves.setdefault((*s.result.series, s.result.placement), []).append(s)
    looks = curve_looks([(mesh, " · ".join(w for w in rest if w)) for mesh, *rest in curves])
    return [(look, group) for look, group in zip(looks, list(curves.values())[:CURVES])]


def curve_looks(names: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Colour by mesh, marker and dashes by variant, so that a reader can follow either."""
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


def _speedup_curve(left: Axes, right: Axes, group: Sequence[Speedup], style: dict[str, Any]) -> None:
    start = sorted({s.base.ranks for s in group if s.base})  # the base: a speedup of P0 on P0 ranks
    ranks = np.array(start + [s.result.ranks for s in group])
    ends = [(float(n),) * 3 for n in start] + [(s.ratio, s.low, s.high) for s in group]
    ratios = np.array(ends).T  # the ratio and the ends of its range
    canvas.curve_with_bars(left, ranks, *ratios, **style)
    known = np.isfinite([s.efficiency for s in group])
    shown = np.append([known.any()] * len(start), known).astype(bool)
    canvas.curve_with_bars(right, ranks[shown], *(ratios / ranks)[:, shown], **style)


def communication(results: Sequence[Result]) -> Plot | None:
    """Share of communication in CG against ranks."""
    timed = [r for r in results if measures.CG in r.times and r.ranks > 1]
    if not timed:
        return None
    curves: dict[tuple[str, ...], list[Result]] = {}
    for r in timed:
        curves.setdefault((*r.series, r.placement), []).append(r)
    looks = curve_looks([(mesh, " · ".join(w for w in rest if w)) for mesh, *rest in curves])
    with canvas.figure(1, height=4.0) as (drawn, (axes,)):
        for look, group in zip(looks, list(curves.values())[:CURVES]):
            found = [measures.communication(r.runs) for r in group]
            shares = np.array([(c.share, c.by_rank.min(), c.by_rank.max()) for c in found])
            canvas.curve_with_bars(axes, [r.ranks for r in group], *(100 * shares).T, **look)
        canvas.rank_axis(axes, [r.ranks for r in timed])
        axes.set_ylim(0, 100)
        axes.set_ylabel("communication / CG, %")
        canvas.legend_below(drawn, axes)
        return canvas.plot(
            drawn,
            "communication",
            "Share of communication in CG",
            "Send, wait, unpack and all-reduce over the CG time, both as means over ranks; the bar shows "
            "the range over ranks. The share grows with the number of ranks and is largest for small "
            "meshes, which have little to compute between two messages. A long bar means uneven load: the "
            "fast ranks wait.",
        )


def iterations(results: Sequence[Result]) -> Plot | None:
    """Iterations against equations of runs to a tolerance; None for fewer than two sizes."""
    solved = [r for r in results if not r.pool.case.stop.iterations and r.record.solve.converged]
    if len({r.record.mesh.n_equations for r in solved}) < 2:
        return None
    curves: dict[tuple[str, str], set[tuple[int, int]]] = {}
    for r in solved:
        points = curves.setdefault((r.record.mesh.element, r.variant), set())
        points |= {(p.mesh.n_equations, p.solve.iterations) for p in r.pool.records}
    everything = np.array(sorted(set().union(*curves.values())), dtype=float)
    with canvas.figure(1, height=4.0) as (drawn, (axes,)):
        looks = curve_looks([(" · ".join(key), "") for key in curves])
        for i, (look, points) in enumerate(zip(looks, curves.values())):
            x, y = np.array(sorted(points)).T
            size = 7.0 + 4 * i  # concentric rings if curves coincide
            axes.plot(x, y, **look, markersize=size, markerfacecolor="none", markeredgewidth=1.8)
        _cube_root(axes, everything)
        canvas.plain_log(axes, "x", everything[:, 0])
        canvas.plain_log(axes, "y", everything[:, 1])
        axes.set_xlabel("equations")
        axes.set_ylabel("iterations of CG")
        canvas.legend_below(drawn, axes)
        return canvas.plot(
            drawn,
            "iterations",
            "Iterations against equations",
            "Iterations to reach the tolerance. Runs of one system coincide for any number of ranks, because "
            "the partition must not change the count. Without a preconditioner, the points follow the dashed "
            "line: the cube root of the number of equations.",
        )


def _cube_root(axes: Axes, points: np.ndarray) -> None:
    """A dashed line of slope 1/3 through the first point."""
    x = np.array([points[:, 0].min(), points[:, 0].max()])
    start = points[np.argmin(points[:, 0]), 1]
    axes.plot(
        x, start * (x / x[0]) ** (1 / 3), "--", color=canvas.GREY, linewidth=1.2, label="∝ equations$^{1/3}$"
    )


def residuals(results: Sequence[Result]) -> Plot | None:
    """|r_k| against k for every mesh and variant, on the fewest and on the most ranks."""
    groups = {k: g for k, g in by_series(results).items() if len(g[0].record.solve.residuals) > 1}
    if not groups:
        return None
    with canvas.figure(1, height=4.2) as (drawn, (axes,)):
        for look, group in zip(curve_looks(list(groups)), list(groups.values())[:CURVES]):
            few, many = min(group, key=lambda r: r.ranks), max(group, key=lambda r: r.ranks)
            _history(axes, few, {**look, "marker": ""})
            if many is not few:
                _history(axes, many, {"color": look["color"], "marker": "o", "linestyle": ""}, sparse=True)
        targets = {r.record.solve.target for r in results if r.record.solve.target > 0}
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
            "for the most. Dots on the line show that the parallel run computes the same iterates. The "
            "dashed line is the residual at which CG stops.",
        )


def _history(axes: Axes, result: Result, look: dict[str, Any], *, sparse: bool = False) -> None:
    values = np.array(result.record.solve.residuals)
    step = -(-len(values) // (24 if sparse else POINTS))
    k = np.unique(np.append(np.arange(0, len(values), step), len(values) - 1))
    positive = k[values[k] > 0]
    axes.plot(positive, values[positive], **look)
