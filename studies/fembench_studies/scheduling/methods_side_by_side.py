"""A task graph scheduled by several methods: makespans, every task, and a picture of the best schedule."""

import csv
import io
from collections.abc import Sequence
from typing import Any

from fembench.base.tables import csv_cell, table
from fembench.base.units import plural, seconds
from fembench.errors import InputError
from fembench.model.platform import Platform
from fembench_studies.scheduling.execute import Schedule, timeline
from fembench_studies.scheduling.graph_files import NamedGraph
from fembench_studies.scheduling.picture import picture
from fembench_studies.scheduling.schedulers import METHODS, usable

Row = dict[str, Any]  # a schedule in the form of the JSON output


def chosen_methods(text: str) -> list[str]:
    """The methods named in a text such as 'heft,cpop', without repetition. Raises InputError."""
    asked = [word.strip() for word in text.split(",") if word.strip()]
    for name in asked:
        if name not in METHODS:
            known = ", ".join(METHODS)
            raise InputError(f"--method {text}: unknown method '{name}'; expected some of {known}")
    return list(dict.fromkeys(asked))


def schedules(made: NamedGraph, platform: Platform, names: Sequence[str] = ()) -> list[Row]:
    """The schedules of the named methods; without names, of all methods that can handle the graph."""
    chosen = names or usable(made.graph, platform)
    return [_row(name, METHODS[name](made.graph, platform), made, platform) for name in chosen]


def _row(name: str, schedule: Schedule, made: NamedGraph, platform: Platform) -> Row:
    """A schedule: its makespan by the method's own model, its makespan under HLogP, and every task."""
    slots = timeline(made.graph, platform, schedule.order, schedule.host)
    return {
        "method": name,
        "found_by": schedule.method,
        "makespan": max(slot.end for slot in slots),
        "promised": schedule.expected,
        "hosts_used": schedule.hosts_used,
        "tasks": [
            {"task": made.names[s.task], "host": platform.names[s.host], "begin": s.work, "end": s.end}
            for s in slots
        ],
    }


def as_tree(rows: Sequence[Row], made: NamedGraph, platform: Platform) -> dict[str, Any]:
    """The schedules as JSON."""
    return {"graph": made.graph.name, "hosts": list(platform.names), "schedules": list(rows)}


def as_csv(rows: Sequence[Row]) -> str:
    """Every task of every schedule as CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["method", "task", "host", "begin_s", "end_s"])
    for row in rows:
        writer.writerows(
            [row["method"], csv_cell(t["task"]), csv_cell(t["host"]), repr(t["begin"]), repr(t["end"])]
            for t in row["tasks"]
        )
    return stream.getvalue()


def as_text(rows: Sequence[Row], made: NamedGraph, platform: Platform) -> str:
    """Makespans, shortest first, and a picture of the best schedule."""
    ranked = sorted(rows, key=lambda row: row["makespan"])
    best = ranked[0]
    cells = [
        [
            row["method"],
            seconds(row["makespan"]),
            f"x {row['makespan'] / best['makespan']:.2f}" if best["makespan"] else None,
            seconds(row["promised"]),
            row["hosts_used"],
        ]
        for row in ranked
    ]
    heads = ["method", "makespan by HLogP", "relative to best", "by the method's model", "processors"]
    head = f"{made.graph.name}: {plural(made.graph.n_tasks, 'task')}, {plural(len(made.graph.edges), 'edge')}"
    line = picture(best["tasks"], platform.names)
    title = f"{best['method']} ({best['found_by']}), 0 to {seconds(best['makespan'])}"
    return f"{head}\n\n{table(heads, cells, align='lrrrr')}\n\n{title}\n{line}"
