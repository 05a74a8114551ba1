"""thesis-000 anew: its five result tables, means and hits, on a virtual park of 32 machines and under MPI."""

import csv
import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fembench.model.interval import TimeRange
from fembench.report import table
from fembench.report.page import Section
from fembench.report.plots import canvas
from fembench.report.plots.canvas import Plot
from fembench.report.table import Table, words
from fembench.studies import charts
from fembench.studies.charts import Panel
from fembench.studies.experiments import wanted
from fembench.studies.layout import beside, count, value
from fembench.studies.page import publish
from fembench.studies.pamela.farm_models import VERSIONS, App
from fembench.studies.pamela.interval_score import IntervalScore, score
from fembench.studies.pamela.park import COUNTS, LABEL, SPEEDS, ParkOutcome, experiment, pooled
from fembench.studies.thesis_000.farm_live import PROGRAMS, FarmRun, worst_score

DATA = Path(__file__).parent / "data"
TITLE = "Reproduction of thesis 000"
# its name -> application, with Q, what it is, tables, figures
KINDS: dict[str, tuple[App, bool, str, str, str]] = {
    "pi": ("pi", False, "Monte-Carlo π", "5.7, 5.8, C.1–C.3", "5.1, 5.2"),
    "prim": ("prim", False, "primes, conditionals at their worst", "5.9, 5.10, C.4–C.6", "5.3, 5.4"),
    "primQ": ("prim", True, "primes, with Q", "5.11, 5.12, C.7–C.9", "5.5, 5.6"),
    "mat": ("mat", False, "whole matrices", "5.13, 5.14, C.10–C.12", "5.7, 5.8"),
    "rand": (
        "rand",
        False,
        "selected elements, conditionals at their worst",
        "5.15, 5.16, C.13–C.15",
        "5.9, 5.10",
    ),
}
BEYOND = {"mat by phase": ("mat", False), "rand with Q, by phase": ("rand", True)}
Results = dict[str, list[ParkOutcome]]


@functools.cache
def printed(name: str) -> tuple[dict[str, str], ...]:
    """A table of the thesis, as it lies in data/."""
    with open(DATA / f"farm_{name}.csv", newline="", encoding="utf-8") as stream:
        return tuple(csv.DictReader(stream))


def thesis_scores() -> dict[tuple[str, int], IntervalScore]:
    """(version, machines) -> what the thesis' own numbers give by Eqs 5.2 and 5.3."""
    found = {}
    for row in printed("results"):
        ends = TimeRange(float(row["estimate_min_s"]), float(row["estimate_max_s"]))
        times = [float(row[f"measured_{k}_s"]) for k in range(1, 5)]
        found[row["version"], int(row["machines"])] = score(times, [ends] * 4)
    return found


def virtual(only: Sequence[str] = ()) -> Results:
    """These applications (all) on the virtual park."""
    kinds = {name: kind for name, kind in KINDS.items() if wanted(name, only)}
    made: Results = {name: experiment(app, with_q=q) for name, (app, q, *_) in kinds.items()}
    beyond = {name: kind for name, kind in BEYOND.items() if wanted(name.split()[0], only)}
    return made | {name: experiment(app, with_q=q, compose="phase") for name, (app, q) in beyond.items()}  # type: ignore[arg-type]


def compose(results: Results, live: Sequence[FarmRun]) -> list[Section]:
    """All sections of the page."""
    theirs = thesis_scores()
    sections = [Section("Findings", [], [means(results, theirs)])]
    sections += [Section("Under MPI", [], [live_table(live)])] if live else []
    sections.append(Section("Machines", [], [machines()]))
    for name in (n for n in KINDS if n in results):
        plots = [times(name, results[name]), hits(name, results[name], theirs)]
        sections.append(Section(name, plots, [every_run(name, results[name])]))
    return sections


def means(results: Results, theirs: dict[tuple[str, int], IntervalScore]) -> Table:
    """R2: mean error of each version."""
    rows = []
    for name in (n for n in (*KINDS, *BEYOND) if n in results):
        for version in VERSIONS:
            mine = pooled([o for o in results[name] if o.version == version])
            own = [theirs[f"{name}_{version}", p] for p in COUNTS] if name in KINDS else []
            printed_mean = 100 * float(np.mean([s.mean_error for s in own])) if own else np.nan
            inside = float(sum(s.hits for s in own)) if own else np.nan
            mine_values = [
                100 * mine.mean_error,
                float(mine.hits),
                100 * mine.middle_error,
                100 * mine.half_width,
            ]
            wide = [s.half_width for s in own]
            middle = [s.middle_error for s in own]
            rows.append(
                (
                    (f"{name}_{version}",),
                    mine_values,
                    [
                        printed_mean,
                        inside,
                        100 * float(np.mean(middle)) if own else np.nan,
                        100 * float(np.mean(wide)) if own else np.nan,
                    ],
                )
            )
    return beside(
        "means",
        "Mean error and hits of 20 (Tables 5.8, 5.10, 5.12, 5.14, 5.16; Figs 5.2 to 5.10)",
        "SYNTHETIC: ours on the virtual park. Mean error by Eqs 5.2, 5.3, per cent: 0 inside the "
        "interval. The thesis prints 4.218 for primQ_D; its rows give 6.018. Of mat it says 30 hits; its "
        "rows give 29. 'By phase' and 'rand with Q' are not in the thesis: bounds summed over phases, and "
        "the sampling fraction as Q. The middle error, |measured - middle| / measured, cannot be lowered "
        "by wide intervals.",
        ("platform",),
        ("mean_error_percent", "hits", "middle_error_percent", "half_width_percent"),
        rows,
    )


def live_table(live: Sequence[FarmRun]) -> Table:
    """The programs under MPI."""
    rows = []
    for one in live:
        informed, worst, record = one.informed, worst_score(one), one.record
        p = record.predicted or one.worst
        rows.append(
            (
                one.program,
                PROGRAMS[one.program],
                one.workers,
                float(np.median(record.seconds)),
                p.low,
                p.high,
                100 * informed.mean_error,
                100 * worst.mean_error,
                informed.hits,
                100 * informed.half_width,
            )
        )
    columns = (
        words("program"),
        words("thesis"),
        count("workers"),
        value("measured_s"),
        value("predicted_from_s"),
        value("predicted_to_s"),
        value("mean_error_percent"),
        value("mean_error_worst_case_percent"),
        count("hits"),
        value("half_width_percent"),
    )
    label = live[0].record.environment.synthetic
    return Table(
        "live",
        "Farm programs under MPI, predicted before they ran",
        f"SYNTHETIC ({label.split(',')[0]}, …: three speeds, all dilated). Seconds; medians of the runs of "
        "a job. The machine model is a calibration just before; conditionals by Q, beside them at their "
        "worst.",
        columns,
        tuple(rows),
    )


def machines() -> Table:
    """R5: Tab. 5.1 beside the virtual park."""
    theirs = [r for r in printed("machines") if r["performance_factor_w"]]
    rows = tuple(
        (int(r["machine"]), f"{r['subnet']}:{r['name']}", r["cpu"], float(r["performance_factor_w"]), mine)
        for r, mine in zip(theirs, SPEEDS)
    )
    columns = (
        count("machine"),
        words("name"),
        words("cpu"),
        value("thesis_w", "W, thesis"),
        value("w", "W, here"),
    )
    return Table("machines", "Machines (Table 5.1)", f"Here: {LABEL}.", columns, rows)


def every_run(name: str, outcomes: Sequence[ParkOutcome]) -> Table:
    """R1: intervals, times and errors."""
    rows = []
    for o in outcomes:
        s = o.score
        their = next(
            r
            for r in printed("results")
            if r["version"] == f"{name}_{o.version}" and int(r["machines"]) == o.machines
        )
        rows.append(
            (
                o.version,
                o.machines,
                o.predicted.low,
                o.predicted.high,
                *o.measured,
                100 * s.mean_error,
                float(their["estimate_min_s"]),
                float(their["estimate_max_s"]),
                *(float(their[f"measured_{k}_s"]) for k in range(1, 5)),
                float(their["mean_error_printed_percent"]),
            )
        )
    mine = ["t_min_s", "t_max_s", "run_1_s", "run_2_s", "run_3_s", "run_4_s", "mean_error_percent"]
    columns = (
        words("version"),
        count("machines"),
        *(value(m) for m in mine),
        *(value(f"thesis_{m}", f"thesis {m.replace('_', ' ')}") for m in mine),
    )
    title = f"{KINDS[name][2]}: interval and four runs (Tables {KINDS[name][3]})"
    return Table(f"runs_{name}", title, f"SYNTHETIC here: {LABEL}. Seconds.", columns, tuple(rows))


def times(name: str, outcomes: Sequence[ParkOutcome]) -> Plot:
    """R3: interval bars and points over machines, ours above, theirs below."""
    with canvas.figure(8, columns=4, height=2.7) as (drawn, axes_of):
        for k, version in enumerate(VERSIONS):
            mine = [(o.predicted.low, o.predicted.high, o.measured) for o in outcomes if o.version == version]
            rows = [r for r in printed("results") if r["version"] == f"{name}_{version}"]
            theirs = [
                (
                    float(r["estimate_min_s"]),
                    float(r["estimate_max_s"]),
                    tuple(float(r[f"measured_{i}_s"]) for i in range(1, 5)),
                )
                for r in sorted(rows, key=lambda r: int(r["machines"]))
            ]
            _bars(axes_of[k], mine, f"{version}, here")
            _bars(axes_of[4 + k], theirs, f"{version}, thesis")
        canvas.legend_below(drawn, axes_of[0])
        return canvas.plot(
            drawn,
            f"times_{name}",
            f"{KINDS[name][2]}: predicted and measured (Figs {KINDS[name][4].split(',')[0]}, C)",
            "Bars: the predicted interval; points: four runs. Above here (virtual park), below the thesis.",
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
    """R4: runs inside the interval."""
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
        "Of four runs on each number of machines.",
        panels,
        top=4,
        columns=4,
        height=2.5,
    )


def build(folder: Path, results: Results, live: Sequence[FarmRun], only: Sequence[str] = ()) -> Path:
    """Write the report into the study's folder; returns index.html."""
    ways = [LABEL, *(["farm programs under MPI: emulated speeds, dilated"] if live else [])]
    return publish(folder, TITLE, compose(results, live), ways, only)


def terminal(results: Results, live: Sequence[FarmRun]) -> str:
    """The findings."""
    made = [means(results, thesis_scores())] if results else []
    made += [live_table(live)] if live else []
    return "\n\n".join(f"{t.title}\n\n{table.text(t)}\n\n{t.note}" for t in made)
