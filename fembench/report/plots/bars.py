"""Stacked and grouped bars: phases against ranks, the ranks of one run, send and receive, parts.

One bar per peer: set-up and solve of the same system."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fembench.base import units
from fembench.records import phases as ph
from fembench.records.contest import PeersRecord
from fembench.report import measures
from fembench.report.measures import CG, by_name, mean_times, over_runs
from fembench.report.plots import canvas
from fembench.report.plots.canvas import Axes, Plot
from fembench.report.results import Result, by_mesh, by_series, variants
from fembench.report.work import partitions
from fembench.stats.summary import median


def names(*phases: int) -> tuple[str, ...]:
    """Names of phases, as in `Result.times`."""
    return tuple(ph.NAMES[k] for k in phases)


# The bands of a stack, in the order of a run: label, names in `Result.times`, colour
SET_UP = (
    ("partition", names(ph.PARTITION), canvas.GREY),
    ("distribute", names(ph.DISTRIBUTE, ph.INTERFACE), canvas.PALE),
    ("assembly", names(ph.ASSEMBLY), canvas.GREEN),
)
SOLVE = (
    ("product", names(*ph.PRODUCT_PARTS), canvas.BLUE),
    ("vectors", names(*ph.VECTOR_PARTS), canvas.SKY),
    ("loop", (measures.LOOP,), canvas.BLACK),
    ("send + unpack", names(*ph.OWN_MESSAGES), canvas.ORANGE),
    ("wait", names(ph.WAIT), canvas.VERMILION),
    ("all-reduce", names(ph.ALLREDUCE), canvas.PINK),
)
SENT = (
    ("send", names(ph.SEND), canvas.ORANGE),
    ("receive (wait + unpack)", names(ph.WAIT, ph.UNPACK), canvas.VERMILION),
    ("all-reduce", names(ph.ALLREDUCE), canvas.PINK),
)
PANELS = 6  # in one figure
BARS = 200  # in one panel


def labelled(*labels: str) -> str:
    """'wait (dark orange) and all-reduce (pink)': labels with the colours of their bands, for captions."""
    colours = {label: colour for label, _, colour in (*SET_UP, *SOLVE)}
    *others, last = (f"{label} ({canvas.NAMED[colours[label]]})" for label in labels)
    return f"{', '.join(others)} and {last}" if others else last


def phases(results: Sequence[Result]) -> list[Plot]:
    """Phases against ranks, one figure per variant, one panel per mesh."""
    made = []
    for i, variant in enumerate(variants(results)):
        meshes = by_mesh(r for r in results if r.variant == variant and CG in r.times)
        if not meshes:
            continue
        shown = dict(list(meshes.items())[-PANELS:])
        titled = {
            f"{mesh}\n{units.count(group[0].record.mesh.n_equations)} equations": group
            for mesh, group in shown.items()
        }
        with canvas.panels(titled) as (drawn, panels):
            for axes, group in panels:
                _stack(axes, [mean_times(r.runs) for r in group], [r.setting for r in group])
            canvas.legend_below(drawn, panels[0][0])
            made.append(
                canvas.plot(
                    drawn,
                    f"phases-{i + 1}" if i else "phases",
                    f"Phases against ranks, {variant}",
                    "One set of assembly and CG, and the partitioning before it; the run proceeds from "
                    "bottom to top. Each band is a mean over ranks and the number on top is the sum. "
                    "(Times on the slowest rank are in the table; they would not add up.) Work should shrink "
                    f"as ranks are added: {labelled('assembly', 'product', 'vectors', 'loop')}. "
                    f"Communication is {labelled('send + unpack', 'wait', 'all-reduce')}; 'wait' is time "
                    "spent waiting for a neighbour." + _left_out(meshes, shown),
                )
            )
    return made


def _left_out(everything: dict[str, list[Result]], shown: dict[str, list[Result]]) -> str:
    missing = [mesh for mesh in everything if mesh not in shown]
    return f" Not drawn: {', '.join(missing)}." if missing else ""


def _stack(axes: Axes, bars: Sequence[dict[str, float]], labels: Sequence[str]) -> None:
    """Bars of seconds by name, with their sum on top."""
    segments = (*SET_UP, *SOLVE)
    heights = np.array([[sum(max(bar.get(n, 0.0), 0.0) for n in s[1]) for s in segments] for bar in bars])
    factor, unit = canvas.seconds_scale(float(heights.sum(axis=1).max()))
    tops = np.cumsum(heights, axis=1) * factor
    for k, (label, _, colour) in enumerate(segments):
        bottom = tops[:, k - 1] if k else np.zeros(len(bars))
        axes.bar(range(len(bars)), tops[:, k] - bottom, 0.72, bottom, color=colour, label=label)
    if len(bars) <= 8:
        for i, height in enumerate(tops[:, -1]):
            axes.annotate(
                units.digits(height), (i, height), (0, 3), textcoords="offset points", ha="center", size=9.5
            )
    axes.set_ylim(0, 1.1 * tops[:, -1].max())
    axes.set_ylabel(unit)
    canvas.categories(axes, labels, "ranks")


def rank_by_rank(results: Sequence[Result]) -> Plot | None:
    """Each rank's CG time by phase, in the run with the most ranks (on the largest mesh)."""
    candidates = [r for r in results if r.ranks > 1 and CG in r.times]
    if not candidates:
        return None
    result = max(candidates, key=lambda r: (r.ranks, r.record.mesh.n_equations))
    medians = {name: over_runs(found) for name, found in by_name(result.runs).items()}
    with canvas.figure(1, height=3.8) as (drawn, (axes,)):
        factor, unit = canvas.seconds_scale(float(medians[CG].max()))
        bottom = np.zeros(len(_firsts(result.ranks)))
        for label, parts, colour in SOLVE:
            height = factor * _means(sum(medians.get(n, np.zeros(result.ranks)) for n in parts))
            axes.bar(range(len(height)), height, 0.8, bottom, color=colour, label=label)
            bottom += height
        canvas.categories(axes, [str(p) for p in _firsts(result.ranks)], "rank")
        axes.set_ylabel(unit)
        slowest = result.times[CG]
        axes.set_title(canvas.escaped(f"{result.mesh} · {result.variant} · ranks {result.setting}"))
        canvas.legend_below(drawn, axes)
        return canvas.plot(
            drawn,
            "ranks",
            "CG, rank by rank",
            "Medians over the timed sets. All bars have about the same height because ranks wait for each "
            f"other in every iteration. The rank with much {labelled('product')} and little "
            f"{labelled('wait')} is the one that the others wait for (slowest in CG: rank {slowest.rank} on "
            f"{slowest.host})." + _grouped(result.ranks, "ranks"),
        )


def send_receive(results: Sequence[Result]) -> list[Plot]:
    """Send, receive and all-reduce of one set; one panel per mesh and variant."""
    series = by_series(r for r in results if r.ranks > 1 and measures.WAIT in r.times)
    if not series:
        return []
    panels_of = {f"{mesh} · {variant}": group for (mesh, variant), group in series.items()}
    shown = dict(list(panels_of.items())[-PANELS:])
    with canvas.panels(shown, height=3.4) as (drawn, panels):
        for axes, group in panels:
            _groups(axes, [mean_times(r.runs) for r in group], [r.setting for r in group])
        canvas.legend_below(drawn, panels[0][0])
        return [
            canvas.plot(
                drawn,
                "send_receive",
                "Send, receive and all-reduce inside CG",
                "Seconds per set, mean over ranks. Receive includes waiting for a partner that has not "
                "sent yet. If it is much larger than send, the load is uneven or a rank is late, and a "
                "faster network would not help." + _left_out(panels_of, shown),
            )
        ]


def _groups(axes: Axes, bars: Sequence[dict[str, float]], labels: Sequence[str]) -> None:
    """Three bars side by side for every label."""
    heights = np.array([[sum(bar.get(n, 0.0) for n in parts) for _, parts, _ in SENT] for bar in bars])
    factor, unit = canvas.seconds_scale(float(heights.max()))
    for k, (label, _, colour) in enumerate(SENT):
        axes.bar(
            np.arange(len(bars)) + 0.27 * (k - 1), factor * heights[:, k], 0.25, color=colour, label=label
        )
    axes.set_ylabel(unit)
    canvas.categories(axes, labels, "ranks")


def parts(results: Sequence[Result]) -> Plot | None:
    """Cells and shared dofs of every part of the largest mesh."""
    cut = partitions(results)
    if not cut:
        return None
    largest = max(cut, key=lambda r: r.record.mesh.n_equations).mesh
    chosen = [r for r in cut if r.mesh == largest][-4:]
    with canvas.figure(2 * len(chosen), columns=2, height=2.5) as (drawn, panels):
        for r, cells, shared in zip(chosen, panels[::2], panels[1::2]):
            facts = r.record.partition
            fair = sum(facts.cells) * np.array(facts.targets) / sum(facts.targets)
            _parts(cells, facts.cells, fair, "cells", canvas.BLUE)
            _parts(
                shared,
                facts.shared_dofs,
                np.full(r.ranks, np.mean(facts.shared_dofs)),
                "shared dofs",
                canvas.ORANGE,
            )
            cells.set_title(canvas.escaped(f"{r.mesh} in {r.ranks} parts, {_how(r)}"))
        return canvas.plot(
            drawn,
            "parts",
            "Parts: cells and shared unknowns",
            "Left: the cells of each part, a measure of its work; the black lines are its target. Right: the "
            "unknowns that it shares with other parts and exchanges in every iteration; the black line is "
            "the mean." + _grouped(max(r.ranks for r in chosen), "parts"),
        )


def _how(result: Result) -> str:
    shares = result.pool.case.placement.shares
    return result.record.partition.method + (f", shares {shares}" if shares else "")


def _parts(axes: Axes, values: Sequence[int], fair: np.ndarray, label: str, colour: str) -> None:
    shown, fair = _means(values), _means(fair)
    n = len(shown)
    axes.bar(range(n), shown, 0.8, color=colour)
    axes.hlines(fair, np.arange(n) - 0.45, np.arange(n) + 0.45, colors=canvas.BLACK, linewidths=1.5)
    axes.set_ylabel(label)
    axes.set_ylim(0, 1.12 * max(*shown, *fair, 1))
    canvas.categories(axes, [str(p) for p in _firsts(len(values))], "part")


def _firsts(ranks: int) -> range:
    """The first rank of each bar."""
    return range(0, ranks, -(-ranks // BARS))


def _means(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The mean over the ranks of each bar, of one value per rank."""
    firsts = _firsts(np.size(values))
    counts = np.diff([*firsts, np.size(values)])
    return np.asarray(np.add.reduceat(np.asarray(values, float), firsts) / counts)


def _grouped(ranks: int, what: str) -> str:
    """What a bar shows, if it is not a single rank."""
    each = _firsts(ranks).step
    return f" Each bar is the mean of {each} consecutive {what}." if each > 1 else ""


def peers(record: PeersRecord) -> Plot | None:
    """Time to the solution of all peers that have one, the fastest on top."""
    timed = sorted((r for r in record.runs if r.status == "timed"), key=lambda r: -r.to_solution)
    if not timed:
        return None
    with canvas.figure(1, height=1.4 + 0.27 * len(timed)) as (drawn, (axes,)):
        factor, unit = canvas.seconds_scale(timed[0].to_solution)
        rows = np.arange(len(timed))
        setup = factor * np.array([median(r.setup) for r in timed])
        solve = factor * np.array([r.solve for r in timed])
        colours = [canvas.BLUE if r.own else canvas.ORANGE for r in timed]
        axes.barh(rows, setup, 0.75, color=canvas.GREY)
        axes.barh(rows, solve, 0.75, setup, color=colours)
        for row, total in zip(rows, setup + solve):
            axes.annotate(
                units.digits(total), (total, row), (3, 0), textcoords="offset points", va="center", size=9
            )
        names = [f"{r.peer} {r.precond}" + (f", {r.ranks} ranks" if r.ranks > 1 else "") for r in timed]
        axes.set_yticks(rows, [canvas.escaped(n) for n in names])
        axes.set_ylim(-0.6, len(timed) - 0.4)
        axes.set_xlim(0, 1.08 * float((setup + solve).max()))
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(unit)
        axes.set_title(
            canvas.escaped(f"{record.case.question.mesh}: {units.count(record.mesh.n_equations)} equations")
        )
        canvas.colour_legend(
            drawn, {"set-up": canvas.GREY, "solve, fembench": canvas.BLUE, "solve, peer": canvas.ORANGE}
        )
        return canvas.plot(
            drawn,
            "peers",
            "The same system, solved by other programs",
            f"Set-up and solve to |r|/|f| = {record.case.stop.tolerance:g}: medians over one session in "
            "which all programs took turns. Assembly is not included. Every solution shown agrees with the "
            "reference.",
        )
