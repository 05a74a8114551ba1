"""Task graphs from JSON files.

{"name": "mine", "tasks": [{"name": "a", "seconds": 1.5}, {"name": "b", "seconds": 2}],
 "edges": [{"from": "a", "to": "b", "bytes": 65536}]}

Seconds are those on a host of speed 1. Bytes default to 0.
"""

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import msgspec

from fembench.base.config import read_json
from fembench.errors import InputError
from fembench_studies.scheduling.task_graph import TaskGraph


class _Task(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    seconds: float


class _Edge(msgspec.Struct, forbid_unknown_fields=True):
    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    bytes: float = 0.0


class _File(msgspec.Struct, forbid_unknown_fields=True):
    tasks: list[_Task]
    edges: list[_Edge] = []
    name: str = ""


@dataclass(frozen=True)
class NamedGraph:
    """A task graph, and the names of its tasks."""

    graph: TaskGraph
    names: tuple[str, ...]  # [task]


def read_graph(path: str) -> NamedGraph:
    """The task graph in a .json file, checked and in
    topological order. Raises InputError."""
    if Path(path).suffix != ".json":
        raise InputError(f"{path}: expected a task graph in a file ending in .json")
    found = read_json(path, _File)
    work: dict[str, float] = {}
    for task in found.tasks:
        if task.name in work:
            raise InputError(f"{path}: task '{task.name}' is given twice")
        work[task.name] = _number(task.seconds, f"{path}: task '{task.name}': seconds")
    if not work:
        raise InputError(f"{path}: no tasks; expected at least one")
    size: dict[tuple[str, str], float] = {}
    for edge in found.edges:
        pair, text = (edge.source, edge.target), f"edge '{edge.source}' -> '{edge.target}'"
        missing = next((end for end in pair if end not in work), None)
        if missing is not None:
            raise InputError(f"{path}: {text}: there is no task '{missing}'")
        if pair in size:
            raise InputError(f"{path}: {text} is given twice")
        size[pair] = _number(edge.bytes, f"{path}: {text}: bytes")
    sorter = TopologicalSorter(dict.fromkeys(work, ()))
    for before, after in size:
        sorter.add(after, before)
    try:
        order = list(sorter.static_order())
    except CycleError as error:
        raise InputError(f"{path}: the tasks form a cycle: {' -> '.join(error.args[1])}") from None
    at = {task: k for k, task in enumerate(order)}
    numbered = tuple(sorted((at[a], at[b], n) for (a, b), n in size.items()))
    name = found.name or Path(path).stem
    return NamedGraph(TaskGraph(name, tuple(work[t] for t in order), numbered), tuple(order))


def _number(value: float, what: str) -> float:
    if not 0 <= value < float("inf"):
        raise InputError(f"{what} = {value:g}: expected a number of 0 or more")
    return value
