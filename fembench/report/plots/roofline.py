"""Roofline plots: a panel per series, a colour per number of ranks, a marker per phase."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fembench.base.units import percent, plural
from fembench.report.measures import PRODUCT, VECTORS
from fembench.report.plots import canvas, findings
from fembench.report.plots.canvas import Axes, Plot
from fembench.report.roofline import ITERATION, RooflinePoint

PANELS = 4  # in one figure
ROOFS = 4  # in one panel
MARKERS = {PRODUCT: "s", VECTORS: "o", ITERATION: "^"}
NAMES = {PRODUCT: "product", VECTORS: "vectors", ITERATION: "whole iteration"}


def roofline(found: Sequence[RooflinePoint]) -> Plot | None:
    """The largest meshes; of many numbers of ranks the ends and some between."""
    series: dict[str, list[RooflinePoint]] = {}
    for p in found:
        if np.isfinite(p.roof):
            series.setdefault(" · ".join(p.result.series), []).append(p)
    if not series:
        return None
    shown = {name: _some(points) for name, points in list(series.items())[-PANELS:]}
    everything = [p for points in shown.values() for p in points]
    settings = sorted({(p.result.ranks, p.result.setting) for p in everything})
    colours = {s: canvas.CYCLE[i % len(canvas.CYCLE)] for i, (_, s) in enumerate(settings)}
    low = min(p.intensity for p in everything) / 1.6
    high = max(p.intensity for p in everything) * 1.6
    width = min(canvas.WIDTH, 3.0 + 3.0 * len(shown))
    with canvas.figure(len(shown), height=3.9, width=width) as (drawn, panels):
        for axes, (name, points) in zip(panels, shown.items()):
            axes.set_title(canvas.escaped(name))
            _panel(axes, points, colours, np.array([low, high]))
        canvas.key_below(drawn, _key(colours, everything))
        said = findings.of_roofline(everything)
        return canvas.plot(drawn, "roofline", "Roofline of the phases", CAPTION, said)


CAPTION = (
    "Each point is a phase of cg: flops per byte to the right, flops per second upwards, both on logarithmic "
    "axes. The line of the same colour is its roof: the bandwidth that the same ranks reached together in "
    "the same run, times the flops per byte. A point on its line is limited by memory. The distance of the "
    "triangle, the whole iteration, from the other points is time lost in messages, waiting and the loop. "
    "Bytes are counted from the arrays touched: a point above its line found them in caches."
)


def _some(points: Sequence[RooflinePoint]) -> list[RooflinePoint]:
    """Those of a few settings."""
    settings = list(dict.fromkeys(p.result.setting for p in points))
    at = np.unique(np.linspace(0, len(settings) - 1, min(ROOFS, len(settings))).round().astype(int))
    kept = {settings[i] for i in at}
    return [p for p in points if p.result.setting in kept]


def _panel(axes: Axes, points: Sequence[RooflinePoint], colours: dict[str, str], ends: np.ndarray) -> None:
    roofs = {p.result.setting: p.roof for p in points}
    for setting, roof in roofs.items():
        axes.plot(ends, ends * roof / 1e9, color=colours[setting], linewidth=1.4)
    for p in points:
        axes.plot(
            [p.intensity],
            [p.flop_rate / 1e9],
            color=colours[p.result.setting],
            marker=MARKERS[p.phase],
            linestyle="",
            markersize=8,
        )
        canvas.point_tip(axes, p.intensity, p.flop_rate / 1e9, _said(p))
    rates = [p.flop_rate / 1e9 for p in points] + [
        roof / 1e9 * end for roof in roofs.values() for end in ends
    ]
    canvas.plain_log(axes, "x", ends)
    canvas.plain_log(axes, "y", rates)
    axes.set_xlim(*ends)
    axes.set_xlabel("flops per byte")
    axes.set_ylabel("Gflop/s, all ranks")


def _said(p: RooflinePoint) -> str:
    """A point in words, for the pointer."""
    rates = f"{p.flop_rate / 1e9:.3g} Gflop/s at {p.intensity:.3g} flops per byte"
    return f"{NAMES[p.phase]}, ranks {p.result.setting}\n{rates}: {percent(p.of_roof, 0)} of the roof"


def _key(colours: dict[str, str], points: Sequence[RooflinePoint]) -> dict[str, dict[str, Any]]:
    """Label -> look: lines of the roofs, markers of the phases."""
    ranks = {p.result.setting: p.result.ranks for p in points}
    lines: dict[str, dict[str, Any]] = {
        plural(ranks[setting], "rank") + setting.removeprefix(str(ranks[setting])): {"color": colour}
        for setting, colour in colours.items()
    }
    phases = dict.fromkeys(p.phase for p in points)
    marks: dict[str, dict[str, Any]] = {
        NAMES[name]: {"color": canvas.BLACK, "marker": MARKERS[name], "linestyle": ""} for name in phases
    }
    return {**marks, **lines}
