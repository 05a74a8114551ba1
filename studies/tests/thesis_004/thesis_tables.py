"""The printed tables of the source thesis, errors included, and numbers derived from them by hand."""

import csv
from pathlib import Path

from fembench_studies.thesis_004 import thesis

DATA = Path(__file__).parents[3] / "tests" / "data"
MESHES = (1, 2, 3)
PHASE_TABLES = ("5_6", "5_7", "5_8", "5_9", "5_10", "5_11", "5_12", "5_13", "5_14", "5_15", "5_16", "5_17")
COMMUNICATION_TABLES = ("5_18", "5_19", "5_20", "5_21", "5_22", "5_23")


def rows(name):
    """Rows of 'table_5_27', from the package, or of 'derived_…', with numbers as floats."""
    if name.startswith("table_"):
        return thesis.rows(name.removeprefix("table_"))
    with open(DATA / f"seed004_{name}.csv", newline="", encoding="utf-8") as stream:
        return [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(stream)]


def _value(text):
    try:
        return float(text)
    except ValueError:
        return text


def totals(mesh):
    """Tasks -> (seconds on node00 alone, seconds on node8 alone): Tables 5.26 and 5.25."""
    column = f"mesh_{mesh}_total_ms"
    slow = {int(r["tasks"]): r[column] / 1e3 for r in rows("table_5_26")}
    fast = {int(r["tasks"]): r[column] / 1e3 for r in rows("table_5_25")}
    return {tasks: (slow[tasks], fast[tasks]) for tasks in slow}


def runs(mesh):
    """Run -> ((tasks on node00, tasks on node8), seconds): Table 5.27."""
    return {
        int(r["run"]): ((int(r["tasks_on_node00"]), int(r["tasks_on_node8"])), r[f"mesh_{mesh}_total_s"])
        for r in rows("table_5_27")
    }


def one_task(table):
    """Seconds of the phases with one task in a phase table: the row."""
    return next(r for r in rows(f"table_{table}") if r["tasks"] == 1)
