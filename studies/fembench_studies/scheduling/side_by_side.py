"""A task graph scheduled by several methods: makespans, and every task."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from fembench.base.units import plural
from fembench.errors import InputError
from fembench.report.table import Table
from fembench_studies.layout import columns
from fembench_studies.scheduling.execute import ScheduledTask, timeline
from fembench_studies.scheduling.graph_files import NamedGraph
from fembench_studies.scheduling.methods import METHODS
from fembench_studies.scheduling.platform import Platform


class Executed(NamedTuple):
    """A schedule executed under HLogP. Seconds."""

    method: str
    makespan: float
    promised: float  # by the method's own model
    tasks: list[tuple[str, str, float, float]]  # task, host, begin, end


def schedules(made: NamedGraph, platform: Platform, methods: str = "") -> list[Executed]:
    """The schedules of the methods named in a text such as 'heft,turn', "" means all;
    the shortest first. Raises InputError."""
    names = list(dict.fromkeys(filter(None, map(str.strip, methods.split(","))))) or list(METHODS)
    unknown = next((name for name in names if name not in METHODS), None)
    if unknown is not None:
        known = ", ".join(METHODS)
        raise InputError(f"--method {methods}: unknown method '{unknown}'; expected some of {known}")
    return sorted((_executed(name, made, platform) for name in names), key=lambda one: one.makespan)


def _executed(name: str, made: NamedGraph, platform: Platform) -> Executed:
    found = METHODS[name](made.graph, platform)
    slots: Sequence[ScheduledTask] = timeline(made.graph, platform, found.order, found.host)
    tasks = [(made.names[s.task], platform.names[s.host], s.work, s.end) for s in slots]
    return Executed(name, max(slot.end for slot in slots), found.expected, tasks)


def makespans(found: Sequence[Executed], made: NamedGraph) -> Table:
    """One row per method."""
    graph, least = made.graph, found[0].makespan or float("nan")
    return Table(
        "makespans",
        f"{graph.name}: {plural(graph.n_tasks, 'task')}, {plural(len(graph.edges), 'edge')}",
        "",
        columns(
            "method words; makespan time makespan by HLogP; relative ratio relative to best; "
            "promised time by the method's model; processors count"
        ),
        tuple(
            (one.method, one.makespan, one.makespan / least, one.promised, len({t[1] for t in one.tasks}))
            for one in found
        ),
    )


def tasks(found: Sequence[Executed]) -> Table:
    """Every task of every schedule."""
    rows = tuple((one.method, *task) for one in found for task in one.tasks)
    return Table(
        "tasks", "Tasks", "", columns("method words; task words; host words; begin time; end time"), rows
    )


def tree_of(found: Sequence[Executed], made: NamedGraph, platform: Platform) -> dict[str, Any]:
    """The schedules as JSON."""
    each = [
        one._asdict() | {"tasks": [dict(zip(("task", "host", "begin", "end"), t)) for t in one.tasks]}
        for one in found
    ]
    return {"graph": made.graph.name, "hosts": list(platform.names), "schedules": each}
