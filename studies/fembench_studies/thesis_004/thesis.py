"""The printed tables of Ferreira (2006), errors included."""

import functools
from collections.abc import Iterator
from math import nan

from fembench_studies.layout import source_table
from fembench_studies.thesis_004.quantities import ONE_HOST, PartFacts, Phases, Side, local_equations

MESHES = ("m1", "m2", "m3")  # our Meshes 1, 2, 3
EXPECTED = {"m1": 211, "m2": 328, "m3": 428}  # iterations of an independent solver on the same boxes
# platform -> its tables for Meshes 1, 2, 3
PHASES = {
    "cluster1": ("5_6", "5_8", "5_10"),
    "cluster2": ("5_7", "5_9", "5_11"),
    "smp": ("5_12", "5_14", "5_16"),
    "single_cpu": ("5_13", "5_15", "5_17"),
}
COMMUNICATION = {"cluster1": ("5_18", "5_20", "5_22"), "cluster2": ("5_19", "5_21", "5_23")}
ALONE = {"node8": "5_25", "node00": "5_26"}
PAIRS = ("5_28", "5_29", "5_30")
PAIR_COLUMNS = {
    "fast pair": "cluster_1_total_s",
    "mixed pair": "heterogeneous_total_s",
    "slow pair": "cluster_2_total_s",
}
PARTS = {2: "5_31", 4: "5_32", 8: "5_33"}
Row = dict[str, float | str]
Found = tuple[tuple[str, int, int], dict[str, float]]  # arguments of Side.at, milliseconds by phase


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


RUNS = {int(number(r, "run")): (int(number(r, "tasks_on_node00")), int(number(r, "tasks_on_node8")))
        for r in rows("5_27")}  # fmt: skip


@functools.cache
def printed() -> Side:
    """All times and parts of the tables."""
    times: dict[tuple[str, int, int], dict[str, float]] = {}
    for key, found in (*_phases(), *_totals()):
        times.setdefault(key, {}).update(found)
    made = {
        key: Phases(**{name: value / 1e3 for name, value in found.items()})._replace(
            iteration=found.get("cg", nan) / 1e3 / EXPECTED[MESHES[key[1] - 1]]
        )
        for key, found in times.items()
    }
    return Side(lambda *key: made.get(key, Phases()), {tasks: _parts(tasks) for tasks in ONE_HOST})


def _phases() -> Iterator[Found]:
    """Tables 5.6 to 5.24."""
    for tables in (COMMUNICATION, PHASES):
        for platform, names in tables.items():
            for name in names:
                for row in rows(name):
                    yield _key(platform, row), _milliseconds(row)
    for row in rows("5_24"):
        yield _key("smp", row), _milliseconds(row)


def _key(platform: str, row: Row) -> tuple[str, int, int]:
    return platform, int(number(row, "mesh")), int(number(row, "tasks"))


def _milliseconds(row: Row) -> dict[str, float]:
    names = (column.removesuffix("_ms") for column in row if column.endswith("_ms"))
    return {name: number(row, f"{name}_ms") for name in names if name in Phases._fields}


def _totals() -> Iterator[Found]:
    """Tables 5.25 to 5.30."""
    for mesh, pairs in enumerate(PAIRS, 1):
        for host, name in ALONE.items():
            for row in rows(name):
                key = host, mesh, int(number(row, "tasks"))
                yield key, {"total": number(row, f"mesh_{mesh}_total_ms")}
        for row in rows("5_27"):
            yield ("run", mesh, int(number(row, "run"))), {"total": 1e3 * number(row, f"mesh_{mesh}_total_s")}
        for pair, column in PAIR_COLUMNS.items():
            yield (pair, mesh, 2), {"total": 1e3 * number(rows(pairs)[0], column)}


def _parts(tasks: int) -> list[PartFacts]:
    """Tables 5.31 to 5.33; a single task has the whole of Table 5.5."""
    whole = rows("5_5")[2]
    equations = number(whole, "equations")
    if tasks not in PARTS:
        return [PartFacts(number(whole, "elements"), 0.0, nan, equations)]
    elements, shared = (
        [number(row, name) for row in rows(PARTS[tasks])] for name in ("elements", "shared_dofs")
    )
    local = local_equations(elements, shared, equations)
    return [PartFacts(e, s, nan, n) for e, s, n in zip(elements, shared, local.tolist())]
