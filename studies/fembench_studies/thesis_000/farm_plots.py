"""Figures 5.1 to 5.10 of Herai (2005), with our numbers and the printed ones."""

from collections.abc import Sequence

from fembench.report.plots import canvas
from fembench.report.plots.canvas import Plot
from fembench_studies import charts
from fembench_studies.charts import Panel
from fembench_studies.pamela.farm_models import VERSIONS
from fembench_studies.pamela.interval_score import IntervalScore
from fembench_studies.pamela.park import COUNTS, ParkOutcome
from fembench_studies.thesis_000.farm_printed import KINDS, printed_runs


def times(name: str, outcomes: Sequence[ParkOutcome]) -> Plot:
    """Intervals as bars, runs as points, by number of machines; ours at the top, the printed ones below."""
    with canvas.figure(8, columns=4, height=2.7) as (drawn, axes_of):
        for k, version in enumerate(VERSIONS):
            mine = [(o.predicted.low, o.predicted.high, o.measured) for o in outcomes if o.version == version]
            theirs = [printed_runs()[f"{name}_{version}", machines][:3] for machines in COUNTS]
            _bars(axes_of[k], mine, f"{version}, here")
            _bars(axes_of[4 + k], theirs, f"{version}, thesis")
        canvas.legend_below(drawn, axes_of[0])
        return canvas.plot(
            drawn,
            f"times_{name}",
            f"{KINDS[name][2]}: predicted and measured (Figs {KINDS[name][4].split(',')[0]}, C)",
            "Bars: predicted interval. Points: four runs. Top: here, on the virtual park; bottom: thesis.",
        )


def _bars(axes: canvas.Axes, series: Sequence[tuple[float, float, Sequence[float]]], title: str) -> None:
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
    return charts.grouped(
        f"hits_{name}",
        f"{KINDS[name][2]}: runs inside the interval (Fig. {KINDS[name][4].split(', ')[1]})",
        "Four runs on each number of machines.",
        panels,
        top=4,
        columns=4,
        height=2.5,
    )
