"""Section E13: weighted parts as a table and a plot."""

import numpy as np

from fembench.report.page import Section
from fembench.report.table import Table
from fembench_studies import charts
from fembench_studies.charts import Panel
from fembench_studies.layout import columns
from fembench_studies.thesis_004.phase_means import StudyRecords
from fembench_studies.thesis_004.plan import StudyPlan
from fembench_studies.thesis_004.weighted import Weighted, results


def weighted(plan: StudyPlan, found: StudyRecords) -> Section:
    """E13: unequal parts compared with the best of runs 1 to 11 and with each host alone."""
    runs = results(plan, found)
    return Section("E13 weighted partition", [_plot(runs)] if runs else [], [_table(runs)])


def _table(runs: list[Weighted]) -> Table:
    rows = [
        (
            w.mesh,
            w.kind.storage,
            w.kind.tasks,
            w.round,
            100 * w.share,
            w.seconds,
            w.equal,
            f"run {w.kind.run}" if w.kind.run else None,
            w.best_seconds,
            w.best_seconds / w.seconds,
            w.fast_alone,
            w.slow_alone,
            w.fast_best,
            w.ideal,
            w.seconds / w.ideal,
            100 * w.communication,
            w.verdict,
        )
        for w in runs
    ]
    return Table(
        "weighted",
        "Weighted partition (the thesis' future work)",
        "Seconds. Tasks are those on node00 + those on node8. Round 1 takes its shares from the totals of "
        "each host alone (E9), round 2 from the computing time of each task in round 1. Dense uses the tasks "
        "of the best of runs 1 to 11. Each host alone runs the same number of tasks (dense) or one task per "
        "processor (csr); ideal is 1 / (1/T + 1/T) of those two times. Gain is the speedup over the best of "
        "runs 1 to 11. In the thesis no run was faster than node8 alone: the best took 2.14, 1.76 and 2.04 "
        "times as long.",
        columns(
            "mesh words; storage words; tasks words; round count; share_of_node00_percent value share of "
            "node00, %; weighted_s; equal_s value equal parts s; best_run words; best_run_s; gain value "
            "gain over best run; node8_alone_s; node00_alone_s; best_node8_alone_s; ideal_s; "
            "weighted_over_ideal value weighted / ideal; communication_percent value communication, % of "
            "CG; verdict words"
        ),
        tuple(rows),
    )


def _plot(runs: list[Weighted]) -> charts.Plot:
    last = {(w.kind.storage, w.mesh): w for w in sorted(runs, key=lambda w: -w.seconds)}  # the fastest round
    panels = []
    for storage in dict.fromkeys(w.kind.storage for w in runs):
        mine = [w for (s, _), w in sorted(last.items()) if s == storage]
        base = np.array([w.fast_alone for w in mine])
        series = {
            "weighted": [w.seconds for w in mine],
            "equal parts": [w.equal for w in mine],
            "best of runs 1–11": [w.best_seconds for w in mine],
            "ideal": [w.ideal for w in mine],
        }
        panels.append(
            Panel(
                storage,
                [f"{w.mesh}: {w.kind.tasks}" for w in mine],
                {name: np.array(v) / base for name, v in series.items()},
                "time / node8 alone",
                "mesh and tasks",
            )
        )
    return charts.grouped(
        "weighted",
        "Weighted partition against equal parts",
        "Faster of both rounds, relative to node8 alone with as many tasks (dashed line). Below the line the "
        "slow host helps.",
        panels,
        colours=(charts.canvas.BLUE, charts.canvas.PALE, charts.canvas.ORANGE, charts.canvas.GREEN),
        line=1.0,
        columns=2,
    )
