"""Ratios of times with their intervals, and times against dates."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fembench.report.comparison import Compared
from fembench.report.history import CaseSeries
from fembench.report.plots import canvas
from fembench.report.plots.canvas import Axes, Plot
from fembench.stats.student import Ratio
from fembench.stats.summary import ends_of, median

COLOURS = {"slower": canvas.VERMILION, "faster": canvas.GREEN}
ROW = 0.34  # inches
LEVEL = " The line is their median: no change is shown."
LEVELS = " Lines are the levels between changes, which are dashed."
MOST_ROWS = 60
MOST_SERIES = 40
MARGIN = 3  # days on both sides of a series
TICKS = 8  # dates of an axis at most


def ratios(found: Sequence[Compared]) -> list[Plot]:
    """One figure per comparison: the ratio of each case, and the geometric mean."""
    return [_ratios(one, k) for k, one in enumerate(found, 1) if one.pairs]


def _ratios(one: Compared, number: int) -> Plot:
    rows = one.judged[-MOST_ROWS:]
    base, other = one.base.name, one.other.name
    with canvas.figure(1, height=1.3 + ROW * len(rows)) as (drawn, (axes,)):
        axes.axvline(1, color=canvas.GREY, linestyle="--", linewidth=1.2)
        for y, row in enumerate(rows):
            _row(axes, y, *row)
        axes.set_yticks(range(len(rows)), [canvas.escaped(name) for name, *_ in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(canvas.escaped(f"time of {other} / time of {base}"))
        looks = {"no difference shown, or no verdict": canvas.GREY, **COLOURS}
        canvas.colour_legend(drawn, looks)
        return canvas.plot(
            drawn,
            "ratios" if number == 1 else f"ratios-{number}",
            f"{other} against {base}",
            "Time of assembly and cg, as a ratio. Bars are 95 % intervals over runs, which hold together; a "
            "bar that reaches the dashed line shows no difference. A point without a bar has too few "
            "runs that are not DISTURBED.",
        )


def _row(axes: Axes, y: int, name: str, ratio: Ratio, said: str) -> None:
    low, high = ends_of(ratio.interval)
    spread = np.nan_to_num([[ratio.value - low], [high - ratio.value]])
    colour = COLOURS.get(said, canvas.GREY)
    axes.errorbar([ratio.value], [y], xerr=spread, color=colour, marker="o", capsize=4, elinewidth=1.6)
    ends = f" ({low:.3f}–{high:.3f})" if ratio.interval else ""
    canvas.row_tip(axes, y, 0.9, f"{name}\n{ratio.value:.3f}{ends}: {said}")


def histories(found: Sequence[CaseSeries]) -> list[Plot]:
    """A figure per case of two points or more: those with changes first, as many as a page can show."""
    changed = sorted((s for s in found if len(s.points) > 1), key=lambda s: -len(s.changes))
    return [_series(one, k) for k, one in enumerate(changed[:MOST_SERIES], 1)]


def _series(one: CaseSeries, number: int) -> Plot:
    dates = np.array([p.date for p in one.points], "datetime64[D]")
    days = dates.astype(int).tolist()
    values = np.array([p.seconds for p in one.points])
    loud = np.array([p.disturbed for p in one.points])
    ticks = range(days[0], days[-1] + 1, -(-(days[-1] - days[0] + 1) // TICKS))
    factor, unit = canvas.seconds_scale(float(values.max()))
    caption = "Points are days, each the median of its runs."
    with canvas.figure(1, height=2.8) as (drawn, (axes,)):
        looks: dict[str, Any] = {"color": canvas.BLUE, "markersize": 5, "zorder": 3}
        for points, face in ((~loud, canvas.BLUE), (loud, canvas.PAPER)):
            axes.plot(dates[points], factor * values[points], "o", markerfacecolor=face, **looks)
        if loud.any():
            caption += " Hollow ones are of DISTURBED runs alone."
        for begin, end in one.levels:
            level = factor * median(values[begin:end])
            axes.plot(dates[[begin, end - 1]], [level, level], color=canvas.BLACK)
        for change in one.changes:
            axes.axvline(days[change.at], color=canvas.VERMILION, linestyle="--", linewidth=1.2)
        axes.set_xlim(min(days) - MARGIN, max(days) + MARGIN)
        axes.set_ylim(0, 1.15 * factor * values.max())
        axes.set_ylabel(unit)
        axes.set_xticks(ticks, [str(np.datetime64(day, "D")) for day in ticks], rotation=20)
        return canvas.plot(
            drawn,
            f"history-{number}",
            one.name,
            caption + (LEVELS if one.changes else LEVEL if one.levels else ""),
            "; ".join(map(one.told, one.changes)),
        )
