"""Rings, fork and join, and schedules of Mendes (2004): our numbers and the printed ones."""

from collections.abc import Sequence

import numpy as np

from fembench.report.plots.canvas import Plot
from fembench.report.table import Table
from fembench_studies import charts
from fembench_studies.charts import Panel
from fembench_studies.claims import StudyClaim, error_claim, ratio_claim
from fembench_studies.layout import beside
from fembench_studies.programs.hlogp_sums import error_percent
from fembench_studies.programs.record import unfit
from fembench_studies.thesis_001.grid_live import GridRun
from fembench_studies.thesis_001.grid_plan import (
    CHILDREN,
    GRAPHS,
    LOCAL,
    MICRO,
    REMOTE,
    printed,
    rings,
)
from fembench_studies.thesis_001.grid_plan import thesis_schedule as theirs_of

RING_LIMIT = 2.3  # per cent: error of the source's rings (Tables 4.38, 5.11)
HLOGP_LIMIT = 10.0  # per cent: error of makespans
HLOGP, LATENCY = "HEFT, HLogP", "HEFT, latency"  # of METHODS
HELD = "with the thesis' own constants: a test of the executor, not of the model"
SYNTHETIC = (
    "SYNTHETIC: the thesis' hosts, and messages with its Os, L and Or, are emulated on a shorter time scale. "
    "Our seconds are divided by that scale, the time of a task here over its time in the thesis."
)


def ring_table(found: Sequence[GridRun]) -> Table:
    """Tables 4.25, 4.38 and 5.11."""
    rows = []
    for ring in rings():
        for run in (r for r in found if r.kind == "ring" and r.name == ring.name):
            pair = [run.measured, run.expected]
            said = [ring.measured, ring.estimated]
            rows.append(((run.name,), [*pair, error_percent(*pair)], [*said, error_percent(*said)]))
    return beside(
        "held_rings",
        f"Rings {HELD} (Tables 4.25, 4.38, 5.11)",
        f"{SYNTHETIC} Messages are emulated, and rings estimated, with the same constants. Errors are in per "
        "cent of the measured time; the thesis divides by the larger of the two times.",
        ("platform",),
        ("measured_s", "estimated_s", "error_percent"),
        rows,
    )


def delay_table(found: Sequence[GridRun]) -> Table:
    """Fork and join (6.1)."""
    rows = []
    for run in (r for r in found if r.kind in ("fork", "join")):
        said = next(r for r in printed("fork_join") if r["case"] == run.kind)
        each = REMOTE[0 if run.kind == "fork" else 2]
        total = CHILDREN * each + LOCAL[0] + LOCAL[2]
        took = run.delay
        theirs = [
            float(said[f"{n}_us"]) * MICRO for n in ("mean_overhead", "measured_delay", "predicted_delay")
        ]
        rows.append(
            (
                (run.kind,),
                [each, took, total, error_percent(took, total)],
                [*theirs, error_percent(*theirs[1:])],
            )
        )
    return beside(
        "held_delays",
        f"Fork and join {HELD} (6.1)",
        f"{SYNTHETIC} Messages are emulated, and delays summed, with the same constants. The delay is of "
        "the task on the sender's (fork) or receiver's host (join): eight overheads and the local message.",
        ("platform",),
        ("overhead_s", "measured_delay_s", "sum_s", "error_percent"),
        rows,
    )


def claims(found: Sequence[GridRun]) -> list[StudyClaim]:
    """The executor takes the time that the source's constants add up to, as closely as its rings did; HLogP
    predicts the makespans of its own schedules, and better than the latency model."""
    made = []
    for run in found:
        wrong = unfit(run.record)
        name = f"{run.kind}: {run.name}"
        if run.kind == "ring":
            made.append(ratio_claim(f"executor, {name}", RING_LIMIT, run.promised, run.record.seconds, wrong))
        elif run.name == HLOGP:
            made.append(ratio_claim(f"HLogP, {name}", HLOGP_LIMIT, run.promised, run.record.seconds, wrong))
            made += _closer(found, run, wrong)
    return made


def _closer(found: Sequence[GridRun], run: GridRun, wrong: str) -> list[StudyClaim]:
    """The claim that the error under HLogP is below that under the latency model, for the same graph."""
    other = next((r for r in found if r.kind == run.kind and r.name == LATENCY), None)
    if other is None:
        return []
    limit = abs(error_percent(other.measured, other.expected))
    each = [abs(100 * (run.promised / took - 1)) for took in run.record.seconds]
    return [error_claim(f"HLogP, {run.kind}: less than the latency model", limit, each, wrong)]


def schedule_table(found: Sequence[GridRun]) -> Table:
    """Predicted and executed makespans (6.2, 7)."""
    rows = []
    for run in (r for r in found if r.kind in GRAPHS):
        pair = [run.expected, run.measured]
        said = list(theirs_of(run.kind, run.name))
        rows.append(
            (
                (f"{run.kind}: {run.name}",),
                [*pair, error_percent(pair[1], pair[0])],
                [*said, error_percent(said[1], said[0])],
            )
        )
    return beside(
        "schedules",
        "Schedules: makespan predicted by the scheduler's own model, and executed (6.2, 7)",
        f"{SYNTHETIC} The diamond has 25 tasks, the fork-join 14, on ten hosts. The sizes of messages and "
        "the hosts of the thesis' runs are lost: compare errors and ratios, not seconds. HEFT under the "
        "latency model ignores that overheads occupy processors.",
        ("platform",),
        ("predicted_s", "executed_s", "error_percent"),
        rows,
    )


def schedule_plot(found: Sequence[GridRun]) -> Plot:
    """Predicted and executed makespans, here and in the thesis."""
    panels = []
    for graph in GRAPHS:
        mine = [r for r in found if r.kind == graph]
        if not mine:
            continue
        names = [r.name for r in mine]
        ours = {
            "predicted": [r.expected for r in mine],
            "executed": [r.measured for r in mine],
        }
        said = np.array([theirs_of(graph, n) for n in names])
        panels.append(Panel(f"{graph}, here", names, ours, "s", "method"))
        theirs = {"predicted": said[:, 0].tolist(), "executed": said[:, 1].tolist()}
        panels.append(Panel(f"{graph}, thesis", names, theirs, "s", "method"))
    return charts.grouped(
        "schedules",
        "Schedules (6.2, 7)",
        "Seconds on the time scale of the thesis.",
        panels,
        columns=2,
        height=3.0,
    )


def ring_plot(found: Sequence[GridRun]) -> Plot:
    """Errors of the rings, here and in the thesis."""
    made = ring_table(found)
    at = {c.key: k for k, c in enumerate(made.columns)}
    names = [str(row[0]) for row in made.rows]
    series = {
        "here": [float(str(row[at["error_percent"]])) for row in made.rows],
        "thesis": [float(str(row[at["thesis_error_percent"]])) for row in made.rows],
    }
    return charts.grouped(
        "held_rings",
        f"Errors of the rings, {HELD}",
        "Per cent.",
        [Panel("", names, series, "%", "ring")],
        height=3.4,
    )
