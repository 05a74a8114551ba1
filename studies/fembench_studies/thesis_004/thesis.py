"""The printed tables of Ferreira (2006), errors included."""

import functools

from fembench_studies.layout import source_table

MESHES = ("m1", "m2", "m3")  # our Meshes 1, 2, 3
# platform -> its phase tables for Meshes 1, 2, 3
PHASES = {
    "cluster1": ("5_6", "5_8", "5_10"),
    "cluster2": ("5_7", "5_9", "5_11"),
    "smp": ("5_12", "5_14", "5_16"),
    "single_cpu": ("5_13", "5_15", "5_17"),
}
COMMUNICATION = {"cluster1": ("5_18", "5_20", "5_22"), "cluster2": ("5_19", "5_21", "5_23")}
PAIRS = ("5_28", "5_29", "5_30")
PARTS = {2: "5_31", 4: "5_32", 8: "5_33"}
Row = dict[str, float | str]


@functools.cache
def rows(table: str) -> tuple[Row, ...]:
    """Rows of a table such as '5_27', with numbers as floats."""
    found = source_table("thesis_004", f"table_{table}")
    return tuple({key: _value(text) for key, text in row.items()} for row in found)


def _value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def number(row: Row, column: str) -> float:
    """A cell that must be a number."""
    return float(row[column])


def by_tasks(table: str) -> dict[int, Row]:
    """tasks -> row of a table."""
    return {int(number(row, "tasks")): row for row in rows(table)}


def totals(host: str, mesh: int) -> dict[int, float]:
    """tasks -> seconds on node8 or node00 alone, Mesh 1 to 3 (Tables 5.25 and 5.26)."""
    table = {"node8": "5_25", "node00": "5_26"}[host]
    return {tasks: number(row, f"mesh_{mesh}_total_ms") / 1e3 for tasks, row in by_tasks(table).items()}


def runs(mesh: int) -> dict[int, tuple[int, int, float]]:
    """run -> (tasks on node00, tasks on node8, seconds), Table 5.27."""
    return {
        int(number(row, "run")): (
            int(number(row, "tasks_on_node00")),
            int(number(row, "tasks_on_node8")),
            number(row, f"mesh_{mesh}_total_s"),
        )
        for row in rows("5_27")
    }


def run_seconds(mesh: int) -> dict[int, float]:
    """run -> seconds, Table 5.27."""
    return {run: seconds for run, (_, _, seconds) in runs(mesh).items()}
