"""Weak scaling: time of an iteration and its efficiency against ranks, at a constant size per rank."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fembench.report.plots import canvas
from fembench.report.plots.canvas import Axes, Plot
from fembench.report.plots.lines import CURVES, curve_looks
from fembench.report.weak import ITERATION, WeakPoint


def weak_scaling(found: Sequence[WeakPoint]) -> Plot | None:
    """One curve per series."""
    series: dict[str, list[WeakPoint]] = {}
    for p in found:
        series.setdefault(p.series, []).append(p)
    if not series:
        return None
    shown = dict(list(series.items())[-CURVES:])
    factor, unit = canvas.seconds_scale(
        max(p.times[ITERATION].median for group in shown.values() for p in group)
    )
    ranks = [p.result.ranks for group in shown.values() for p in group]
    with canvas.figure(2, columns=2, height=4.4) as (drawn, (left, right)):
        right.axhline(1.0, color=canvas.GREY, linestyle="--", linewidth=1.2)
        for look, group in zip(curve_looks([(name, "") for name in shown]), shown.values()):
            _curve(left, right, group, factor, look)
        for axes in (left, right):
            canvas.rank_axis(axes, ranks)
        left.set_ylim(0, 1.15 * left.dataLim.y1)
        left.set_ylabel(f"iteration of cg, {unit}")
        right.set_ylim(0, max(1.1, 1.05 * _highest(found)))
        right.set_ylabel("efficiency")
        canvas.legend_below(drawn, left)
        return canvas.plot(
            drawn,
            "weak",
            "Weak scaling: constant size per rank",
            "Runs whose equations per rank differ by less than 10 %. Left: time of one iteration of cg on "
            "the slowest rank, with its 95 % interval; a flat line is perfect. Right: its efficiency over "
            "the smallest number of ranks, with the range of the table. A drop at few ranks of one host "
            "means that cores share memory bandwidth; a drop from host to host means messages or waiting. "
            "Efficiency is left out where ranks are unequal or share cores.",
        )


def _highest(found: Sequence[WeakPoint]) -> float:
    ends = [e[2] for p in found for e in (p.efficiency.get(ITERATION, ()),) if e]
    return min(float(np.nanmax(ends, initial=1.0)), 2.0)


def _curve(left: Axes, right: Axes, group: Sequence[WeakPoint], factor: float, look: dict[str, Any]) -> None:
    ranks = np.array([p.result.ranks for p in group])
    times = np.array([(t.median, t.low, t.high) for p in group for t in (p.times[ITERATION],)])
    canvas.curve_with_bars(left, ranks, *(factor * times).T, **look)
    known = [(p.result.ranks, *p.efficiency[ITERATION]) for p in group if ITERATION in p.efficiency]
    if known:
        values = np.array(known)
        canvas.curve_with_bars(right, *values.T, **look)
