"""Bars for unequal hosts: every run compared with each host alone, and with their summed speed."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fembench.report.plots import canvas
from fembench.report.plots.canvas import Axes, Plot
from fembench.report.unequal import Unequal

RUNS = 16  # in one panel
PANELS = 6  # in one figure


def unequal_hosts(found: Sequence[Unequal]) -> list[Plot]:
    """Speedup over each host alone, and E_het next to speedup / ranks; one panel per mesh and variant."""
    series: dict[str, list[Unequal]] = {}
    for u in found:
        if u.alone or np.isfinite(u.e_het):
            series.setdefault(" · ".join(u.result.series), []).append(u)
    shown = dict(list(series.items())[-PANELS:])
    left_out = (
        f" Not drawn: {', '.join(s for s in series if s not in shown)}." if len(series) > PANELS else ""
    )
    made = []
    held = {name: group for name, group in shown.items() if any(u.alone for u in group)}
    if held:
        made.append(_figure(held, _against, _AGAINST, left_out))
    used = {name: group for name, group in shown.items() if any(np.isfinite(u.e_het) for u in group)}
    if used:
        made.append(_figure(used, _efficiencies, _EFFICIENCY, left_out))
    return made


class Words(NamedTuple):
    """Name, title and caption of a figure."""

    name: str
    title: str
    caption: str


_AGAINST = Words(
    "speedup_alone",
    "Unequal hosts: speedup over each host alone",
    caption="Each run on unequal ranks, compared with one rank on each of its hosts (Ferreira 2006). "
    "Below the dashed line, that host alone is faster than all of them together. Labels give the "
    "ranks and shares of each run.",
)
_EFFICIENCY = Words(
    "speedup_unequal",
    "Unequal hosts: how well they are used",
    caption=f"E_het ({canvas.NAMED[canvas.BLUE]}) is the time that the work would take at the summed speed "
    "of all ranks, over the time of the run; 1 (dashed) means that all ranks computed from beginning to end. "
    f"Speedup / ranks ({canvas.NAMED[canvas.ORANGE]}) is the speedup over the fastest host alone, divided by "
    "the number of ranks. It cannot reach 1 on unequal ranks; the black lines show its largest possible "
    "value, P_eq / P.",
)
Draw = Callable[[Axes, Sequence[Unequal], Sequence[str]], dict[str, str]]


def _figure(shown: Mapping[str, Sequence[Unequal]], draw: Draw, words: Words, left_out: str) -> Plot:
    with canvas.panels(shown, columns=2, height=3.8) as (drawn, panels):
        labels: dict[str, str] = {}
        hosts = list(dict.fromkeys(name for group in shown.values() for u in group for name in u.alone))
        for axes, group in panels:
            labels |= draw(axes, group[-RUNS:], hosts)
            axes.axhline(1.0, color=canvas.GREY, linestyle="--", linewidth=1.2)
            canvas.categories(axes, [u.result.setting for u in group[-RUNS:]], "ranks")
        canvas.colour_legend(drawn, labels)
        return canvas.plot(drawn, words.name, words.title, words.caption + left_out)


def _against(axes: Axes, group: Sequence[Unequal], hosts: Sequence[str]) -> dict[str, str]:
    """Draw bars by host, each in the same colour in all panels; return {label: colour}."""
    everywhere = {name: canvas.CYCLE[i % len(canvas.CYCLE)] for i, name in enumerate(hosts)}
    colours = {name: c for name, c in everywhere.items() if any(name in u.alone for u in group)}
    _bars(
        axes, [[u.against.get(name, (np.nan,))[0] for u in group] for name in colours], list(colours.values())
    )
    axes.set_ylabel("speedup, assembly + CG")
    return {f"over {name} alone": colour for name, colour in colours.items()}


def _efficiencies(axes: Axes, group: Sequence[Unequal], hosts: Sequence[str]) -> dict[str, str]:
    """Draw bars of both efficiencies; return {label: colour}."""
    per_rank = [u.fastest[1] for u in group]
    _bars(axes, [[u.e_het for u in group], per_rank], [canvas.BLUE, canvas.ORANGE])
    at, most = np.arange(len(group)) + 0.2, [u.equivalent / u.result.ranks for u in group]
    axes.hlines(most, at - 0.2, at + 0.2, colors=canvas.BLACK, linewidths=1.5)
    axes.set_ylabel("efficiency")
    axes.set_ylim(0, max(1.1, 1.1 * np.nanmax([u.e_het for u in group] + per_rank)))
    return {"E_het": canvas.BLUE, "speedup / ranks": canvas.ORANGE}


def _bars(axes: Axes, rows: Sequence[Sequence[float]], colours: Sequence[str]) -> None:
    """A group of bars at 0, 1, 2, …, one per row, with the values on top if there is room."""
    width = 0.8 / len(rows)
    for k, (values, colour) in enumerate(zip(rows, colours)):
        at = np.arange(len(values)) + width * (k - (len(rows) - 1) / 2)
        axes.bar(at, values, 0.95 * width, color=colour)
        for x, value in zip(at, values):
            if np.isfinite(value) and len(values) * len(rows) <= 16:
                axes.annotate(
                    f"{value:.2f}", (x, value), (0, 3), textcoords="offset points", ha="center", size=9
                )
