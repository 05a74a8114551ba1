"""Charts of the studies in several panels: grouped bars, stacked bars, lines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fembench.report.plots import canvas
from fembench.report.plots.canvas import Plot
from fembench_studies.layout import figure_of

OURS, THESIS = canvas.BLUE, canvas.PALE
Series = Mapping[str, Sequence[float]]


class Panel(NamedTuple):
    """Values by series and category; nan if missing."""

    title: str
    names: Sequence[str]  # categories
    series: Series
    y: str
    x: str = "tasks"


SIDES = "here", "thesis"  # at the end of a label, or of the title of a panel


class Point(NamedTuple):
    """A value with its place in a chart."""

    value: float
    where: str  # without the side
    side: str  # one of SIDES, or ""


def finding(panels: Sequence[Panel], *, whole: bool = False) -> str:
    """How our values lie to those of the source, or else the ends of their range, in a sentence.

    whole: the sums over the series count, as of bars on top of each other
    """
    points = [point for panel in panels for point in _points(panel, whole) if np.isfinite(point.value)]
    ours, theirs = ({p.where: p.value for p in points if p.side == side} for side in SIDES)
    ratios = [value / theirs[where] for where, value in ours.items() if theirs.get(where)]
    if ratios:
        low, middle, high = (f"{r:.2f}" for r in (min(ratios), float(np.median(ratios)), max(ratios)))
        if len(ratios) == 1:
            return f"The value here is {low} times that of the thesis."
        return (
            f"The values here are {low} to {high} times those of the thesis, {middle} in the median of "
            f"{len(ratios)}."
        )
    if not points:
        return ""
    least, most = (find(points, key=lambda p: p.value) for find in (min, max))
    said = f"The largest value is {_placed(most)}"
    return f"{said}." if len(points) == 1 else f"{said}, the smallest {_placed(least)}."


def _placed(point: Point) -> str:
    return f"{figure_of(point.value)} ({', '.join(filter(None, [point.where, point.side]))})"


def _points(panel: Panel, whole: bool) -> Iterator[Point]:
    rows = np.array([*panel.series.values()], float)
    sums = np.where(np.isfinite(rows).any(axis=0), np.nansum(rows, axis=0), np.nan)
    series: Mapping[str, Iterable[float]] = {"": sums} if whole else panel.series
    for label, heights in series.items():
        for name, height in zip(panel.names, heights):
            words = [*label.split(", "), *panel.title.split(", ")]
            side = next((word for word in words if word in SIDES), "")
            place = [f"{panel.x} {name}".strip(), *(word for word in words if word and word != side)]
            yield Point(float(height), ", ".join(place), side)


def grouped(
    name: str,
    title: str,
    caption: str,
    panels: Sequence[Panel],
    *,
    colours: Sequence[str] = (OURS, THESIS, canvas.ORANGE, canvas.GREEN, canvas.PINK),
    log: bool = False,
    line: float | None = None,
    top: float | None = None,
    columns: int = 3,
    height: float = 3.2,
) -> Plot:
    """Bars side by side, one group per category. `line`: dashed line at this
    height; `top`: end of all y."""
    with canvas.figure(len(panels), columns=columns, height=height) as (drawn, axes_of):
        for axes, panel in zip(axes_of, panels):
            width = 0.84 / len(panel.series)
            for k, (label, heights) in enumerate(panel.series.items()):
                x = np.arange(len(panel.names)) + width * (k - (len(panel.series) - 1) / 2)
                values = np.asarray(heights, float)
                _tips(axes.bar(x, values, 0.92 * width, color=colours[k], label=label), panel, label)
            if line is not None:
                axes.axhline(line, color=canvas.BLACK, linestyle="--", linewidth=1.1)
            if top is not None:
                axes.set_ylim(0, top)
            if log:
                axes.set_yscale("log")
            _finish(axes, panel)
        canvas.legend_below(drawn, axes_of[0])
        return canvas.plot(drawn, name, title, caption, finding(panels))


def stacked(
    name: str,
    title: str,
    caption: str,
    panels: Sequence[Panel],
    colours: Sequence[str] = (canvas.GREY, canvas.GREEN, canvas.BLUE),
) -> Plot:
    """Bars on top of each other."""
    with canvas.figure(len(panels), columns=3, height=2.9) as (drawn, axes_of):
        for axes, panel in zip(axes_of, panels):
            bottom = np.zeros(len(panel.names))
            for colour, (label, heights) in zip(colours, panel.series.items()):
                values, at = np.asarray(heights, float), range(len(panel.names))
                _tips(axes.bar(at, values, 0.72, bottom, color=colour, label=label), panel, label)
                bottom = bottom + np.nan_to_num(values)
            _finish(axes, panel)
        canvas.legend_below(drawn, axes_of[0])
        return canvas.plot(drawn, name, title, caption, finding(panels, whole=True))


def curves(
    name: str,
    title: str,
    caption: str,
    panels: Sequence[Panel],
    *,
    log: bool = False,
    dashed: str = "thesis",
    columns: int = 3,
) -> Plot:
    """Points joined by lines; series whose name contains `dashed` are dashed."""
    with canvas.figure(len(panels), columns=columns, height=3.3) as (drawn, axes_of):
        for axes, panel in zip(axes_of, panels):
            for k, (label, heights) in enumerate(panel.series.items()):
                axes.plot(
                    range(len(panel.names)),
                    np.asarray(heights, float),
                    color=canvas.CYCLE[k % len(canvas.CYCLE)],
                    marker=canvas.MARKERS[k % len(canvas.MARKERS)],
                    linestyle="--" if dashed in label else "-",
                    label=label,
                )
                for x, height in enumerate(heights):
                    canvas.point_tip(axes, x, height, _value(panel, label, x))
            if log:
                axes.set_yscale("log")
            _finish(axes, panel)
        canvas.legend_below(drawn, axes_of[0])
        return canvas.plot(drawn, name, title, caption, finding(panels))


def _tips(bars: Iterable[Any], panel: Panel, label: str) -> None:
    """The value of each bar under the pointer."""
    for k, bar in enumerate(bars):
        canvas.tip(bar, _value(panel, label, k))


def _value(panel: Panel, label: str, k: int) -> str:
    return f"{label}, {panel.x} {panel.names[k]}: {figure_of(panel.series[label][k])}".removeprefix(", ")


def _finish(axes: canvas.Axes, panel: Panel) -> None:
    axes.set_title(canvas.escaped(panel.title))
    axes.set_ylabel(panel.y)
    canvas.categories(axes, panel.names, panel.x)
