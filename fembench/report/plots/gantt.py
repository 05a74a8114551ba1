"""Plots of single runs: time lines of the first iterations, by rank, and rooflines.

Time lines as in Ferreira (2006), Figs 5.20, 5.21. Rooflines have a panel per series, a
colour per number of ranks, a marker per phase.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from fembench.base.units import percent, plural, seconds
from fembench.records import phases as ph
from fembench.records.record import Event
from fembench.records.traced import alignment
from fembench.report.measures import PRODUCT, VECTORS
from fembench.report.plots import canvas, findings
from fembench.report.plots.bars import ASSEMBLY, SET_UP, SOLVE, labelled, not_drawn
from fembench.report.plots.canvas import Axes, Plot
from fembench.report.results import Result, unfit
from fembench.report.roofline import ITERATION, RooflinePoint

ROWS = 64  # largest number of ranks drawn
CHARTS = 3

_COLOURS = {
    ph.NAMES.index(name): (label, colour)
    for label, names, colour in (*SET_UP, *ASSEMBLY, *SOLVE)
    for name in names
    if name in ph.NAMES
}
_COLOURS |= {ph.SEND: ("send", canvas.ORANGE), ph.UNPACK: ("unpack", canvas.YELLOW)}
_COLOURS |= {ph.READ: ("read", canvas.SAND), ph.SYNC: ("barrier", canvas.LILAC)}


def time_lines(results: Sequence[Result]) -> list[Plot]:
    """Charts for up to three numbers of ranks, of the smallest mesh: long spans."""
    traced = [r for r in results if r.ranks > 1 and any(e.iteration >= 0 for e in r.record.events)]
    by_ranks: dict[int, Result] = {}
    for r in traced:
        by_ranks.setdefault(r.ranks, r)
    ranks = sorted(by_ranks)
    chosen = ranks if len(ranks) <= CHARTS else [*ranks[: CHARTS - 1], ranks[-1]]
    drawn = f" Of {len(traced)} traced cases, one on the smallest mesh is drawn per number of ranks: "
    drawn += f"{', '.join(map(str, chosen))}."
    return [_chart(by_ranks[p], drawn if len(traced) > len(chosen) else "") for p in chosen]


def _chart(result: Result, drawn_of: str) -> Plot:
    record = result.record
    shown = _rows(result.ranks)
    events = [e for e in record.events if e.rank in shown and e.phase in _COLOURS]
    inside = [e for e in events if e.phase in ph.CG_PARTS]
    before = _without_holes([e for e in events if e.phase not in ph.CG_PARTS])
    row_height = 0.34 if len(shown) <= 8 else 0.2 if len(shown) <= 24 else 0.11
    cut = "before CG, without warm-ups and verification"
    charts = [(group, title) for group, title in ((before, cut), (inside, "")) if group]
    with canvas.figure(len(charts), columns=1, height=1.5 + row_height * len(shown)) as (drawn, panels):
        for axes, (group, title) in zip(panels, charts):
            _draw(axes, group, shown)
            canvas.title(axes, title)
        _mark_iterations(panels[-1], inside)
        present = sorted({e.phase for e in [*before, *inside]})
        legend = dict(_COLOURS[phase] for phase in present)
        canvas.colour_legend(drawn, legend)
        works = [label for label in ("product", "vectors", "preconditioner") if label in legend]
        left_out = f" {len(shown)} of {result.ranks} ranks are drawn." if len(shown) < result.ranks else ""
        lost = sum(record.dropped)
        dropped = f" {plural(lost, 'span')} dropped: the last iteration is not complete." if lost else ""
        return canvas.plot(
            drawn,
            f"time_line-{result.ranks}",
            f"Time line of {plural(result.ranks, 'rank')}: {' · '.join([*result.series, *unfit(result)])}",
            "One row per rank; time runs to the right. Above: set-up and assembly. Below: the first "
            "iterations of CG, with the start of each numbered. A rank computes in "
            f"{labelled(*works)}; it waits for a neighbour in {labelled('wait')}, and for all "
            f"ranks in {labelled('all-reduce')}. If a wait of one rank ends where the product of another "
            "ends, the first was waiting for the second. White is time outside every span: the loop itself "
            f"or the operating system. Time: {alignment(record)}." + dropped + left_out + drawn_of,
            findings.of_time_line(result, inside, len(shown)),
        )


def _without_holes(events: Sequence[Event]) -> list[Event]:
    """Set-up and the assembly of a timed set, closed up where no rank is in any of them for long."""
    if not events:
        return []
    order = sorted(events, key=lambda e: e.begin)
    ends = np.maximum.accumulate([e.end for e in order])
    holes = np.maximum([e.begin for e in order[1:]] - ends[:-1], 0)
    kept = 0.03 * (ends[-1] - order[0].begin - holes.sum())  # of each
    cuts = [0.0, *np.cumsum(np.maximum(holes - kept, 0)).tolist()]
    return [msgspec.structs.replace(e, begin=e.begin - cut, end=e.end - cut) for e, cut in zip(order, cuts)]


def _rows(n_ranks: int) -> list[int]:
    """The ranks to draw: all, or `ROWS` evenly spread ones."""
    return sorted({int(p) for p in np.linspace(0, n_ranks - 1, min(n_ranks, ROWS)).round()})


def _draw(axes: Axes, events: Sequence[Event], shown: Sequence[int]) -> None:
    """Spans as bars, one row per rank, the first on top."""
    start = min(e.begin for e in events)
    factor, unit = canvas.seconds_scale(max(e.end for e in events) - start)
    row = {rank: i for i, rank in enumerate(shown)}
    for phase in dict.fromkeys(e.phase for e in events):
        mine = [e for e in events if e.phase == phase]
        left = factor * (np.array([e.begin for e in mine]) - start)
        right = factor * (np.array([e.end for e in mine]) - start)
        middle = np.array([row[e.rank] for e in mine], dtype=float)
        canvas.rectangles(axes, left, right, middle - 0.4, middle + 0.4, _COLOURS[phase][1])
    for rank in shown:
        canvas.row_tip(axes, row[rank], 0.9, _sums(rank, [e for e in events if e.rank == rank]))
    step = -(-len(shown) // 16)
    axes.set_yticks(range(0, len(shown), step), [str(p) for p in shown[::step]])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_ylabel("rank")
    axes.set_xlabel(unit)
    axes.grid(visible=False, axis="y")
    axes.margins(x=0.01)


def _sums(rank: int, events: Sequence[Event]) -> str:
    """The time of each phase of a rank, the longest first."""
    spent: dict[str, float] = {}
    for e in events:
        label = _COLOURS[e.phase][0]
        spent[label] = spent.get(label, 0.0) + e.end - e.begin
    lines = [f"{label}: {seconds(t)}" for label, t in sorted(spent.items(), key=lambda item: -item[1])]
    return "\n".join([f"rank {rank}", *lines])


def _mark_iterations(axes: Axes, events: Sequence[Event]) -> None:
    """A line where the first rank begins an iteration, with the number if there is room."""
    start = min(e.begin for e in events)
    end = max(e.end for e in events)
    factor, _ = canvas.seconds_scale(end - start)
    begins: dict[int, float] = {}
    for e in events:
        if e.iteration >= 0:
            begins[e.iteration] = min(e.begin, begins.get(e.iteration, end))
    last = start - end
    for iteration, begin in sorted(begins.items()):
        axes.axvline(factor * (begin - start), color=canvas.BLACK, linewidth=0.8)
        if begin - last > 0.03 * (end - start):
            axes.annotate(
                str(iteration + 1),
                (factor * (begin - start), 1),
                (0, 3),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                size=9.5,
                color=canvas.BLACK,
            )
            last = begin


PANELS = 4  # in one figure
ROOFS = 4  # in one panel
MARKERS = {PRODUCT: "s", VECTORS: "o", ITERATION: "^"}
NAMES = {PRODUCT: "product", VECTORS: "vectors", ITERATION: "whole iteration"}


def roofline(found: Sequence[RooflinePoint]) -> Plot | None:
    """The largest meshes; of many numbers of ranks the ends and some between."""
    series: dict[str, list[RooflinePoint]] = {}
    for p in found:
        series.setdefault(" · ".join(p.result.series), []).append(p)
    known = {name: kept for name, points in series.items() if (kept := _with_roof(points))}
    if not known:
        return None
    shown = {name: _some(points) for name, points in list(known.items())[-PANELS:]}
    everything = [p for points in shown.values() for p in points]
    settings = sorted({(p.result.ranks, p.result.marked) for p in everything})
    colours = {s: canvas.CYCLE[i % len(canvas.CYCLE)] for i, (_, s) in enumerate(settings)}
    low = min(p.intensity for p in everything) / 1.6
    high = max(p.intensity for p in everything) * 1.6
    width = min(canvas.WIDTH, 3.0 + 3.0 * len(shown))
    with canvas.figure(len(shown), height=3.9, width=width) as (drawn, panels):
        for axes, (name, points) in zip(panels, shown.items()):
            canvas.title(axes, name)
            _panel(axes, points, colours, np.array([low, high]))
        canvas.key_below(drawn, _key(colours, everything))
        said = findings.of_roofline(everything)
        caption = CAPTION + not_drawn(_missing(series, shown))
        return canvas.plot(drawn, "roofline", "Roofline of the phases", caption, said)


CAPTION = (
    "Each point is a phase of cg: flops per byte to the right, flops per second upwards, both on logarithmic "
    "axes. The line of the same colour is its roof: the bandwidth that the same ranks reached together in "
    "the same run, times the flops per byte. A point on its line is limited by memory. The distance of the "
    "triangle, the whole iteration, from the other points is time lost in messages, waiting and the loop. "
    "Bytes are counted from the arrays touched: a point above its line found them in caches."
)


def _with_roof(points: Sequence[RooflinePoint]) -> list[RooflinePoint]:
    return [p for p in points if np.isfinite(p.roof)]


def _missing(series: dict[str, list[RooflinePoint]], shown: dict[str, list[RooflinePoint]]) -> list[str]:
    """'m1 · csr', 'm2 · csr (ranks 3, 5)': all series, and settings of those shown."""
    names = []
    for name, points in series.items():
        drawn = {p.result.marked for p in shown.get(name, [])}
        left = dict.fromkeys(p.result.marked for p in points if p.result.marked not in drawn)
        if left:
            names.append(f"{name} (ranks {', '.join(left)})" if drawn else name)
    return names


def _some(points: Sequence[RooflinePoint]) -> list[RooflinePoint]:
    """Those of a few settings."""
    settings = list(dict.fromkeys(p.result.marked for p in points))
    at = np.unique(np.linspace(0, len(settings) - 1, min(ROOFS, len(settings))).round().astype(int))
    kept = {settings[i] for i in at}
    return [p for p in points if p.result.marked in kept]


def _panel(axes: Axes, points: Sequence[RooflinePoint], colours: dict[str, str], ends: np.ndarray) -> None:
    roofs = {p.result.marked: p.roof for p in points}
    for setting, roof in roofs.items():
        axes.plot(ends, ends * roof / 1e9, color=colours[setting], linewidth=1.4)
    for p in points:
        axes.plot(
            [p.intensity],
            [p.flop_rate / 1e9],
            color=colours[p.result.marked],
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
    return f"{NAMES[p.phase]}, ranks {p.result.marked}\n{rates}: {percent(p.of_roof, 0)} of the roof"


def _key(colours: dict[str, str], points: Sequence[RooflinePoint]) -> dict[str, dict[str, Any]]:
    """Label -> look: lines of the roofs, markers of the phases."""
    ranks = {p.result.marked: p.result.ranks for p in points}
    lines: dict[str, dict[str, Any]] = {
        plural(ranks[setting], "rank") + setting.removeprefix(str(ranks[setting])): {"color": colour}
        for setting, colour in colours.items()
    }
    phases = dict.fromkeys(p.phase for p in points)
    marks: dict[str, dict[str, Any]] = {
        NAMES[name]: {"color": canvas.BLACK, "marker": MARKERS[name], "linestyle": ""} for name in phases
    }
    return {**marks, **lines}
