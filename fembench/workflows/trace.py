"""The execution graph of a run: what each rank computed, sent and waited for."""

from pathlib import Path
from typing import Any

from fembench.base.config import read_json
from fembench.base.tables import table
from fembench.base.units import plural
from fembench.model.from_record import graph_of_record
from fembench.model.graph import ExecutionGraph, count, length, load_graph, save_graph
from fembench.model.measures import residual_text
from fembench.records.store import load

__all__ = ["as_text", "graph_in", "save_graph", "summary"]


def graph_in(path: Path | str) -> ExecutionGraph:
    """The graph in a file, or that of the record in a file. Raises InputError."""
    return load_graph(path) if "programs" in read_json(path, dict) else graph_of_record(load(path))


def summary(graph: ExecutionGraph) -> dict[str, Any]:
    """The events of each rank, with loops rolled up and unrolled, and the graph's source."""
    ranks = [
        {"rank": r, "events": count(events), "unrolled": length(events)}
        for r, events in enumerate(graph.programs)
    ]
    return {"source": graph.source, "note": graph.note, "residual": graph.residual, "ranks": ranks}


def as_text(graph: ExecutionGraph) -> str:
    """The same as text."""
    ranks = summary(graph)["ranks"]
    lines = [f"execution graph of {graph.source}, {plural(graph.ranks, 'rank')}\n"]
    lines += [table(list(ranks[0]), [list(row.values()) for row in ranks])]
    lines += [graph.note] if graph.note else []
    return "\n".join([*lines, residual_text(graph)] if graph.residual else lines)
