"""Charts in panels, declared by values: bars beside or on each other, curves over ranks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.base import units
from fembench.base.arrays import F64
from fembench.report.plots import canvas
from fembench.report.plots.canvas import Axes, Plot

BESIDE = 1.015  # from the error bars of a curve to those of the next, which stand beside them
WRITTEN = 16  # values that are written on the bars of a panel at most


class Bars(NamedTuple):
    """One panel of bars: a group, or a stack, for each name."""

    title: str
    names: Sequence[str]
    series: Mapping[str, npt.ArrayLike]  # label -> (n_names,) heights; nan if missing
    y: str = ""  # label of the axis; "": seconds, in a suitable unit
    x: str = "ranks"
    marks: Mapping[str, npt.ArrayLike] = {}  # label -> (n_names,) a black line across each bar
    mark: str = ""  # what these lines show
    tops: Sequence[float] = ()  # of a stack in seconds: the numbers on top; (): the sums


def bars(
    name: str,
    title: str,
    caption: str,
    panels: Sequence[Bars],
    colours: Mapping[str, str],
    *,
    finding: str = "",
    stacked: bool = False,
    written: bool = False,
    line: float | None = None,
    columns: int = 3,
    height: float = 3.6,
) -> Plot:
    """Bars in colours by label. `written`: values on top; `line`: height of a dashed line."""
    many = max(len(panel.names) for panel in panels) > WRITTEN
    width = canvas.WIDTH if many else min(canvas.WIDTH, 3.0 + 3.0 * len(panels))
    with canvas.figure(len(panels), columns=columns, height=height, width=width) as (drawn, axes_of):
        for axes, panel in zip(axes_of, panels):
            heights = np.array([np.asarray(v, float) for v in panel.series.values()])
            whole = np.nansum(heights, axis=0) if stacked else heights
            factor, unit = (1.0, "") if panel.y else canvas.seconds_scale(float(np.nanmax(whole)))
            tops = [factor * top for top in panel.tops]
            scaled = panel._replace(series=dict(zip(panel.series, factor * heights)), tops=tops)
            (_stack if stacked else _group)(axes, scaled, colours, written)
            _tips(axes, scaled, unit, heights * factor, stacked)
            if line is not None:
                axes.axhline(line, color=canvas.GREY, linestyle="--", linewidth=1.2)
            highest = max(factor * float(np.nanmax(whole)), axes.dataLim.y1, line or 0)
            axes.set_ylim(0, 1.12 * highest or 1.0)
            canvas.title(axes, panel.title)
            axes.set_ylabel(panel.y or unit)
            canvas.categories(axes, panel.names, panel.x)
        series = (item for panel in panels for item in panel.series.items() if item[0] != panel.y)
        labels = dict.fromkeys(label for label, values in series if np.any(np.nan_to_num(values)))
        if labels:
            lines = dict.fromkeys(panel.mark for panel in panels if panel.mark and panel.marks)
            canvas.colour_legend(drawn, {label: colours[label] for label in labels}, list(lines))
        return canvas.plot(drawn, name, title, caption, finding)


def _tips(axes: Axes, panel: Bars, unit: str, heights: F64, stacked: bool) -> None:
    """The values of each bar under the pointer: of a stack, all that are not zero, the highest first."""
    what, tops = ("whole", panel.tops) if panel.tops else ("sum", np.nansum(heights, axis=0).tolist())
    for k, name in enumerate(panel.names):
        lines = [
            f"{label}: {units.digits(height)} {unit}".rstrip()
            for label, height in zip(panel.series, heights[:, k])
            if height > 0
        ]
        whole = [f"{what}: {units.digits(tops[k])} {unit}"] if stacked else []
        text = "\n".join([f"{panel.x} {name}", *whole, *(reversed(lines) if stacked else lines)])
        canvas.column_tip(axes, k, 0.9, text)


def _group(axes: Axes, panel: Bars, colours: Mapping[str, str], written: bool) -> None:
    width = 0.8 / len(panel.series)
    for k, (label, values) in enumerate(panel.series.items()):
        heights = np.asarray(values, float)
        at = np.arange(len(heights)) + width * (k - (len(panel.series) - 1) / 2)
        _bars(axes, at, 0.95 * width, np.zeros(len(at)), np.nan_to_num(heights), colours[label])
        if label in panel.marks:
            axes.hlines(panel.marks[label], at - 0.5 * width, at + 0.5 * width, colors=canvas.BLACK)
        if written and len(heights) * len(panel.series) <= WRITTEN:
            _write(axes, at, heights, map(units.fixed, heights))


def _stack(axes: Axes, panel: Bars, colours: Mapping[str, str], written: bool) -> None:
    at = np.arange(len(panel.names))
    top = np.zeros(len(at))
    for label, values in panel.series.items():
        base = top
        top = top + np.nan_to_num(np.asarray(values, float))
        if (top > base).any():
            _bars(axes, at, 0.78, base, top, colours[label])
    if written and len(at) <= WRITTEN // 2:
        _write(axes, at, top, map(units.digits, panel.tops or top.tolist()))


def _bars(axes: Axes, at: npt.NDArray[Any], width: float, low: F64, high: F64, colour: str) -> None:
    canvas.rectangles(axes, at - 0.5 * width, at + 0.5 * width, low, high, colour)


def _write(axes: Axes, at: np.ndarray, heights: np.ndarray, texts: Iterable[str]) -> None:
    """Texts on top of bars: their values."""
    for x, height, text in zip(at, heights, texts):
        if np.isfinite(height):
            axes.annotate(text, (x, height), (0, 3), textcoords="offset points", ha="center", size=9.5)


class Series(NamedTuple):
    """Points with error bars; nan if missing."""

    x: Sequence[int]
    ends: F64  # (3, n) values with the lower and the upper ends of their bars
    look: Mapping[str, Any]  # of the line, its markers and its label


class Curves(NamedTuple):
    """One panel of curves against the number of ranks."""

    title: str
    y: str
    curves: Sequence[Series]
    top: float | None = None  # end of the axis
    line: float | None = None  # a dashed line at this height


def curves(
    name: str,
    title: str,
    caption: str,
    panels: Sequence[Curves],
    *,
    columns: int = 2,
    height: float = 4.4,
    finding: str = "",
    adjust: Callable[[Sequence[Axes]], None] = lambda axes: None,
) -> Plot:
    """Curves with a common legend. `adjust`: what is particular to the axes of this plot."""
    with canvas.figure(len(panels), columns=columns, height=height) as (drawn, axes_of):
        for axes, panel in zip(axes_of, panels):
            if panel.line is not None:
                axes.axhline(panel.line, color=canvas.GREY, linestyle="--", linewidth=1.2)
            for k, c in enumerate(panel.curves):
                aside = BESIDE ** (k - (len(panel.curves) - 1) / 2) if (c.ends[1] < c.ends[2]).any() else 1
                canvas.curve_with_bars(axes, aside * np.array(c.x), *c.ends, **c.look)
                _point_tips(axes, c)
            canvas.rank_axis(axes, [x for c in panel.curves for x in c.x])
            axes.set_ylim(0, panel.top or 1.15 * axes.dataLim.y1)
            canvas.title(axes, panel.title)
            axes.set_ylabel(panel.y)
        adjust(axes_of)
        canvas.legend_below(drawn, axes_of[0])
        return canvas.plot(drawn, name, title, caption, finding)


def _point_tips(axes: Axes, series: Series) -> None:
    """The values of each point under the pointer, with the ends of its bar."""
    for ranks, (value, low, high) in zip(series.x, series.ends.T.tolist()):
        if np.isfinite(value):
            known = np.isfinite([low, high]).all() and low < high
            ends = f" ({units.digits(low)}–{units.digits(high)})" if known else ""
            text = f"{series.look['label']}\n{units.plural(ranks, 'rank')}: {units.digits(value)}{ends}"
            canvas.point_tip(axes, ranks, value, text)
