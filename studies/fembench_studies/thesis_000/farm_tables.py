"""Tables and figures of Herai (2005): the virtual park and runs under MPI
next to the printed numbers."""

from collections.abc import Sequence

import numpy as np

from fembench.model.closed_form import TimeRange
from fembench.report.plots import canvas
from fembench.report.plots.canvas import Plot
from fembench.report.table import Table
from fembench_studies.charts import Panel
from fembench_studies.declared import captions
from fembench_studies.pamela.farm_models import VERSIONS
from fembench_studies.pamela.interval_score import IntervalScore
from fembench_studies.pamela.park import COUNTS, LABEL, ParkOutcome, pooled, tasks_of_fastest
from fembench_studies.pamela.true_park import SPEEDS
from fembench_studies.thesis_000.farm_live import PROGRAMS, FarmRun
from fembench_studies.thesis_000.farm_printed import BEYOND, FASTEST, KINDS, printed, printed_runs

Results = dict[str, list[ParkOutcome]]
Interval = tuple[float, float, Sequence[float]]  # predicted low and high, measured
TEXTS = captions("thesis_000")


def means(results: Results, theirs: dict[tuple[str, int], IntervalScore]) -> Table:
    """Mean error and hits of each version."""
    rows = []
    for name in (n for n in (*KINDS, *BEYOND) if n in results):
        for version in VERSIONS:
            mine = pooled([o for o in results[name] if o.version == version])
            own = [theirs[f"{name}_{version}", p] for p in COUNTS] if name in KINDS else []
            rows.append(((f"{name}_{version}",), _summary([mine]), _summary(own)))
    return TEXTS.beside("means", rows)


def _summary(scores: Sequence[IntervalScore]) -> list[float]:
    """Mean error, hits, middle error and half width; all but the hits in
    per cent. nan without scores."""
    if not scores:
        return [np.nan] * 4
    error, middle, half = (
        100 * float(np.mean([getattr(s, name) for s in scores]))
        for name in ("mean_error", "middle_error", "half_width")
    )
    return [error, float(sum(s.hits for s in scores)), middle, half]


def _both(o: ParkOutcome, name: str) -> tuple[ParkOutcome, ParkOutcome]:
    """Our runs and the printed ones, of one version on one number of machines."""
    said = printed_runs()[f"{name}_{o.version}", o.machines]
    return o, ParkOutcome(o.version, o.machines, said.measured, TimeRange(said.low, said.high))


def by_machines(results: Results) -> Table:
    """Hits, errors with their signs, and the spread of the runs, by number
    of machines (all versions)."""
    rows = []
    for name, outcomes in results.items():
        for p in COUNTS:
            pairs = [_both(o, name) for o in outcomes if o.machines == p]
            mine, theirs = (_signed([pair[k] for pair in pairs]) for k in (0, 1))
            rows.append(((name, p), mine, theirs))
    return TEXTS.beside("by_machines", rows)


def _signed(found: Sequence[ParkOutcome]) -> list[float]:
    score = pooled(found)
    spread = [float(np.std(o.measured, ddof=1) / np.mean(o.measured)) for o in found]
    above, below = (float(sum(sign * e > 0 for e in score.errors)) for sign in (1, -1))
    return [float(score.hits), 100 * score.mean_error, above, below, 100 * float(np.mean(spread))]


def speedups(results: Results) -> Table:
    """Speedup over two machines, from the mean of the runs."""
    rows = []
    for name, outcomes in results.items():
        two = {
            o.version: [float(np.mean(b.measured)) for b in _both(o, name)]
            for o in outcomes
            if o.machines == 2
        }
        for o in outcomes:
            base, pair = two[o.version], [float(np.mean(b.measured)) for b in _both(o, name)]
            mine, theirs = (b / t for b, t in zip(base, pair))
            rows.append(((f"{name}_{o.version}", o.machines), [mine], [theirs]))
    return TEXTS.beside("speedups", rows)


def task_costs(results: Results) -> Table:
    """The predicted interval per task of the fastest machine."""
    rows = []
    for name, outcomes in results.items():
        for o in outcomes:
            each = FASTEST[VERSIONS[o.version][0]][COUNTS.index(o.machines)]
            counts = (tasks_of_fastest(o.version, o.machines), each)
            mine, theirs = (
                [k, b.predicted.low / k, b.predicted.high / k] for k, b in zip(counts, _both(o, name))
            )
            rows.append(((f"{name}_{o.version}", o.machines), mine, theirs))
    return TEXTS.beside("task_costs", rows)


def live_table(live: Sequence[FarmRun]) -> Table:
    """Farm programs under MPI, predicted and measured."""
    rows = []
    for one in live:
        score = one.score
        rows.append(
            (
                one.program,
                PROGRAMS[one.program],
                one.workers,
                float(np.median(one.record.seconds)),
                one.predicted.low,
                one.predicted.high,
                100 * score.mean_error,
                score.hits,
                100 * score.half_width,
            )
        )
    label = live[0].record.environment.synthetic.split(",")[0]
    return TEXTS.table("live", rows, label=label)


def machines() -> Table:
    """Table 5.1, and the speeds of the virtual park."""
    theirs = [r for r in printed("farm_machines") if r["performance_factor_w"]]
    rows = tuple(
        (int(r["machine"]), f"{r['subnet']}:{r['name']}", r["cpu"], float(r["performance_factor_w"]), mine)
        for r, mine in zip(theirs, SPEEDS)
    )
    return TEXTS.table("machines", rows, label=LABEL)


def every_run(name: str, outcomes: Sequence[ParkOutcome]) -> Table:
    """Intervals, times and errors of every run."""
    rows = []
    for o in outcomes:
        s = o.score
        their = printed_runs()[f"{name}_{o.version}", o.machines]
        rows.append(
            (
                o.version,
                o.machines,
                o.predicted.low,
                o.predicted.high,
                *o.measured,
                100 * s.mean_error,
                their.low,
                their.high,
                *their.measured,
                their.mean_error_percent,
            )
        )
    what, numbers = KINDS[name][2:4]
    return TEXTS.table("runs_{name}", rows, name=name, what=what, numbers=numbers, label=LABEL)


def times(name: str, outcomes: Sequence[ParkOutcome]) -> Plot:
    """Intervals as bars, runs as points, by number of machines; ours at the
    top, the printed ones below."""
    here: list[Interval] = []
    printed: list[Interval] = []
    with canvas.figure(8, columns=4, height=2.7) as (drawn, axes_of):
        for k, version in enumerate(VERSIONS):
            mine = [(o.predicted.low, o.predicted.high, o.measured) for o in outcomes if o.version == version]
            theirs = [printed_runs()[f"{name}_{version}", machines][:3] for machines in COUNTS]
            _bars(axes_of[k], mine, f"{version}, here")
            _bars(axes_of[4 + k], theirs, f"{version}, thesis")
            here += mine
            printed += theirs
        canvas.legend_below(drawn, axes_of[0])
        return canvas.plot(
            drawn,
            f"times_{name}",
            f"{KINDS[name][2]}: predicted and measured (Figs {KINDS[name][4].split(',')[0]}, C)",
            "Bars: predicted interval. Points: four runs. Top: here, on the virtual park; bottom: thesis.",
            f"Here, {_within(here)}; in the thesis, {_within(printed)}.",
        )


def _within(intervals: Sequence[Interval]) -> str:
    """How many runs lie within their predicted interval."""
    runs = [low <= time <= high for low, high, measured in intervals for time in measured]
    return f"{sum(runs)} of {len(runs)} runs lie within their interval"


def _bars(axes: canvas.Axes, series: Sequence[Interval], title: str) -> None:
    for k, (low, high, measured) in enumerate(series):
        axes.plot(
            [k, k],
            [low, high],
            color=canvas.ORANGE,
            linewidth=7,
            solid_capstyle="butt",
            label="interval" if not k else None,
        )
        axes.plot(
            [k] * len(measured),
            measured,
            "o",
            color=canvas.BLUE,
            markersize=3.5,
            label="runs" if not k else None,
        )
    canvas.plain_log(axes, "y", [t for low, high, measured in series for t in (low, high, *measured)])
    axes.set_title(title)
    axes.set_ylabel("s")
    canvas.categories(axes, [str(p) for p in COUNTS], "machines")


def hits(name: str, outcomes: Sequence[ParkOutcome], theirs: dict[tuple[str, int], IntervalScore]) -> Plot:
    """Number of runs inside the interval, by number of machines."""
    panels = []
    for version in VERSIONS:
        mine = [float(o.score.hits) for o in outcomes if o.version == version]
        own = [float(theirs[f"{name}_{version}", p].hits) for p in COUNTS]
        panels.append(
            Panel(
                version,
                [str(p) for p in COUNTS],
                {"here": mine, "thesis": own},
                "runs inside, of 4",
                "machines",
            )
        )
    what, _, figures = KINDS[name][2:]
    number = figures.partition(", ")[2]
    return TEXTS.figure("hits_{name}", panels, name=name, what=what, number=number)
