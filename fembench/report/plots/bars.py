"""Bars: phases against ranks, the ranks of one run, unequal hosts."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fembench.base import units
from fembench.base.arrays import F64
from fembench.records import phases as ph
from fembench.report import measures
from fembench.report.measures import CG, by_name, mean_times, over_runs
from fembench.report.plots import canvas, charts, findings
from fembench.report.plots.canvas import Plot
from fembench.report.plots.charts import Bars
from fembench.report.results import Result, by_mesh, methods, of_real_hosts
from fembench.report.times import VISIBLE
from fembench.report.unequal import Unequal


def names(*phases: int) -> tuple[str, ...]:
    """Names of phases, as in `Result.times`."""
    return tuple(ph.NAMES[k] for k in phases)


# The bands of a stack, in the order of a run: label, names in `Result.times`, colour
SET_UP = (
    ("partition", names(ph.PARTITION), canvas.GREY),
    ("distribute", names(ph.DISTRIBUTE, ph.INTERFACE), canvas.PALE),
)
ASSEMBLY = (("assembly", names(ph.ASSEMBLY), canvas.GREEN),)
SOLVE = (
    ("product", names(*ph.PRODUCT_PARTS), canvas.BLUE),
    ("vectors", names(ph.DOT, ph.AXPY), canvas.SKY),
    ("preconditioner", names(ph.PRECOND), canvas.BROWN),
    ("loop", (measures.LOOP,), canvas.GREY),
    ("send + unpack", names(*ph.OWN_MESSAGES), canvas.ORANGE),
    ("wait", names(ph.WAIT), canvas.VERMILION),
    ("all-reduce", names(ph.ALLREDUCE), canvas.PINK),
)
COLOURS = {label: colour for label, _, colour in (*SET_UP, *ASSEMBLY, *SOLVE)}
PANELS = 6  # in one figure
BARS = 200  # in one panel
SAME_HEIGHT = 1.1  # highest over lowest: up to there, bars have about the same height
RUNS = 16  # on unequal hosts, in one panel


def labelled(*labels: str) -> str:
    """'wait (dark orange) and all-reduce (pink)': labels with their colours, for captions."""
    *others, last = (f"{label} ({canvas.NAMED[COLOURS[label]]})" for label in labels)
    return f"{', '.join(others)} and {last}" if others else last


def _bands(
    seconds: Sequence[Mapping[str, npt.ArrayLike]], bands: Iterable[tuple[str, tuple[str, ...], str]]
) -> dict[str, npt.ArrayLike]:
    """Label of each band -> its seconds in each bar."""
    return {
        label: [np.maximum(sum(np.asarray(one.get(n, 0.0)) for n in parts), 0) for one in seconds]
        for label, parts, _ in bands
    }


def _shown(series: Mapping[str, list[Result]]) -> tuple[dict[str, list[Result]], str]:
    """(the last panels, a sentence that names the others)."""
    return dict(list(series.items())[-PANELS:]), not_drawn(list(series)[:-PANELS])


def not_drawn(names: Sequence[str]) -> str:
    """A sentence that names what a plot has no room for, or ""."""
    return f" Not drawn: {', '.join(names)}." if names else ""


def phases(results: Sequence[Result]) -> list[Plot]:
    """A set, and the set-up before it, against ranks: two figures per method, those of real hosts first."""
    order = methods([*of_real_hosts(results), *results])
    found = {v: by_mesh(r for r in results if r.method == v and CG in r.times) for v in order}
    made: list[Plot] = []
    for k, (method, meshes) in enumerate((item for item in found.items() if item[1]), start=1):
        end = f"-{k}" if k > 1 else ""
        made += [_set(f"phases{end}", method, meshes), _set_up(f"set_up{end}", method, meshes)]
    return made


def _set(name: str, method: str, meshes: dict[str, list[Result]]) -> Plot:
    shown, left_out = _shown(meshes)
    took = [[r.times[measures.SOLVE].median for r in group] for group in shown.values()]
    panels = [p._replace(tops=tops) for p, tops in zip(_panels(shown, (*ASSEMBLY, *SOLVE)), took)]
    seen = {label for panel in panels for label, seconds in panel.series.items() if np.any(seconds)}
    work = [label for label in ("assembly", "product", "vectors", "preconditioner", "loop") if label in seen]
    caption = (
        "One set, from bottom to top; the number above it is its time on the slowest rank, as in the tables. "
        f"Bands are means over ranks{_gap(panels)}. "
        f"Work should shrink as ranks are added: {labelled(*work)}. Communication, also that of the "
        f"preconditioner, is {labelled('send + unpack', 'wait', 'all-reduce')}; 'wait' is time spent waiting "
        "for a neighbour."
    )
    said = findings.of_stacks("a set takes", list(shown.values())[-1], panels[-1].series, took[-1])
    title = f"A set of assembly and CG against ranks, {method}"
    return _stacks(name, title, caption + left_out, panels, said)


def _gap(panels: Sequence[Bars]) -> str:
    """' and medians of their own, …' if the bands of a bar do not add up to the number on top."""
    sums = [np.sum([np.asarray(v, float) for v in panel.series.values()], axis=0) for panel in panels]
    off = [abs(s / top - 1) for panel, each in zip(panels, sums) for s, top in zip(each, panel.tops) if top]
    most = max(off, default=0.0)
    why = f" and medians of their own, which add up to it only within {units.percent(most, 0)}"
    return why if most > VISIBLE else ""


def _set_up(name: str, method: str, meshes: dict[str, list[Result]]) -> Plot:
    shown, left_out = _shown(meshes)
    panels = _panels(shown, SET_UP)
    caption = (
        "What a run does once, before its sets: it cuts the mesh into parts and sends each rank its own. "
        "Each band is a mean over ranks, and the number on top is the sum. It usually grows with the ranks; "
        "a program that solves many times on one mesh pays for it once."
    )
    what = "the set-up takes, as a mean over ranks,"
    said = findings.of_stacks(what, list(shown.values())[-1], panels[-1].series)
    return _stacks(name, f"Set-up against ranks, {method}", caption + left_out, panels, said)


def _panels(
    meshes: Mapping[str, list[Result]], bands: Iterable[tuple[str, tuple[str, ...], str]]
) -> list[Bars]:
    """The bands of each result, one panel per mesh."""
    return [
        Bars(
            f"{mesh}\n{units.count(group[0].record.mesh.n_equations)} equations",
            [r.marked for r in group],
            _bands([mean_times(r.runs) for r in group], bands),
        )
        for mesh, group in meshes.items()
    ]


def _stacks(name: str, title: str, caption: str, panels: Sequence[Bars], said: str) -> Plot:
    return charts.bars(name, title, caption, panels, COLOURS, finding=said, stacked=True, written=True)


def rank_by_rank(results: Sequence[Result]) -> Plot | None:
    """Each rank's CG time by phase, in the run with the most ranks (on the largest mesh)."""
    candidates = [r for r in results if r.ranks > 1 and CG in r.times]
    if not candidates:
        return None
    result = max(candidates, key=lambda r: (r.ranks, r.record.mesh.n_equations))
    medians = {name: over_runs(found) for name, found in by_name(result.runs).items()}
    nothing = np.zeros(result.ranks)
    spent = {label: sum((medians.get(n, nothing) for n in of), nothing) for label, of, _ in SOLVE}
    series = {label: _means(seconds) for label, seconds in spent.items()}
    title = f"{result.mesh} · {result.method} · ranks {result.marked}"
    panel = Bars(title, list(map(str, _firsts(result.ranks))), series, x="rank")
    slowest = result.times[CG]
    heights = np.sum([*series.values()], axis=0)
    high = (
        "All bars have about the same height because ranks wait for each other in every iteration"
        if heights.max() <= SAME_HEIGHT * heights.min()
        else f"The bars are {units.seconds(float(heights.min()))} to {units.seconds(float(heights.max()))} "
        "high; each part is a median of its own"
    )
    caption = (
        f"Medians over the timed sets. {high}. The rank with much {labelled('product')} and little "
        f"{labelled('wait')} is the one that the others wait for (slowest in CG: rank {slowest.rank} on "
        f"{slowest.host})."
    )
    each = _firsts(result.ranks).step
    if each > 1:
        caption += f" Each bar is the mean of {each} consecutive ranks."
    work = spent["product"] + spent["vectors"] + spent["preconditioner"]
    said = findings.of_ranks(result, work, spent["wait"] + spent["all-reduce"])
    title = "CG, rank by rank"
    return charts.bars("ranks", title, caption, [panel], COLOURS, finding=said, stacked=True, height=3.8)


def _firsts(ranks: int) -> range:
    """The first rank of each bar."""
    return range(0, ranks, -(-ranks // BARS))


def _means(values: npt.ArrayLike) -> F64:
    """The mean over the ranks of each bar, of one value per rank."""
    firsts = _firsts(np.size(values))
    counts = np.diff([*firsts, np.size(values)])
    return np.asarray(np.add.reduceat(np.asarray(values, float), firsts) / counts)


AGAINST = (
    "Each run on unequal ranks, compared with one rank on each of its hosts (Ferreira 2006). Below the "
    "dashed line, that host alone is faster than all of them together. Labels give the ranks and shares of "
    "each run."
)
EFFICIENCY = (
    f"E_het ({canvas.NAMED[canvas.BLUE]}) is the time that the work would take at the summed speed of all "
    "ranks, over the time of the run; 1 (dashed) means that all ranks computed from beginning to end."
)
PER_RANK = (
    f" Speedup / ranks ({canvas.NAMED[canvas.ORANGE]}) is the speedup over the fastest host alone, divided "
    "by the number of ranks. It cannot reach 1 on unequal ranks; the short lines show its largest possible "
    "value, P_eq / P."
)
LARGEST = "largest possible (P_eq / P)"


def unequal_hosts(found: Sequence[Unequal]) -> list[Plot]:
    """Speedup over each host alone; E_het beside speedup / ranks; a panel per series."""
    series: dict[str, list[Unequal]] = {}
    for u in found:
        series.setdefault(" · ".join(u.result.series), []).append(u)
    hosts = dict.fromkeys(f"over {name} alone" for u in found for name in u.alone)
    colours = {name: canvas.CYCLE[i % len(canvas.CYCLE)] for i, name in enumerate(hosts)}
    against, efficiency = [], []
    for title, group in list(series.items())[-PANELS:]:
        runs = group[-RUNS:]
        labels = [u.result.marked for u in runs]
        alone = dict.fromkeys(name for u in runs for name in u.alone)
        ratios = {f"over {n} alone": [u.against.get(n, (np.nan,))[0] for u in runs] for n in alone}
        against += [Bars(title, labels, ratios, "speedup, assembly + CG")] if ratios else []
        each = {"E_het": [u.e_het for u in runs]}
        most: dict[str, list[float]] = {}
        if alone:
            each["speedup / ranks"] = [u.fastest[1] for u in runs]
            most = {"speedup / ranks": [u.equivalent / u.result.ranks for u in runs]}
        if np.isfinite(each["E_het"]).any():
            efficiency.append(Bars(title, labels, each, "efficiency", marks=most, mark=LARGEST))
    over = findings.of_alone(found)
    best = findings.of_use(found)
    used = {"E_het": canvas.BLUE, "speedup / ranks": canvas.ORANGE}
    told = EFFICIENCY + PER_RANK * any(panel.marks for panel in efficiency)
    return [
        charts.bars(
            name, title, text, panels, looks, finding=said, written=True, line=1.0, columns=2, height=3.8
        )
        for name, title, text, panels, looks, said in (
            ("speedup_alone", "Unequal hosts: speedup over each host alone", AGAINST, against, colours, over),
            ("speedup_unequal", "Unequal hosts: how well they are used", told, efficiency, used, best),
        )
        if panels
    ]
