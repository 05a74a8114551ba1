"""A graph as DOT, for Graphviz."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from fembench.base.files import write_atomic
from fembench.base.units import seconds, size
from fembench.model.graph import Collective, Compute, Event, ExecutionGraph, Loop, Receive, Send


def write_dot(graph: ExecutionGraph, path: Path | str) -> None:
    """Write ranks as columns, events as boxes, messages as arrows (for `dot -Tsvg graph.dot`)."""
    write_atomic(path, "\n".join(_dot(graph)) + "\n")


def _dot(graph: ExecutionGraph) -> Iterator[str]:
    yield "digraph execution {"
    yield "  node [shape=box, fontsize=10];"
    sends: dict[tuple[int, int, int], list[str]] = {}
    receives: dict[tuple[int, int, int], list[str]] = {}
    for rank, program in enumerate(graph.programs):
        yield f'  subgraph cluster_{rank} {{ label="rank {rank}";'
        names = []
        for k, (e, label) in enumerate(_labels(graph, program)):
            name = f"r{rank}_{k}"
            names.append(name)
            shape = " shape=ellipse style=bold" if isinstance(e, Loop) else ""
            yield f'    {name} [label="{label}"{shape}];'
            if isinstance(e, Send):
                sends.setdefault((rank, e.to, e.tag), []).append(name)
            elif isinstance(e, Receive):
                receives.setdefault((e.source, rank, e.tag), []).append(name)
        if len(names) > 1:
            yield f"    {' -> '.join(names)};"
        yield "  }"
    for key, names in sends.items():
        for a, b in zip(names, receives.get(key, [])):
            yield f"  {a} -> {b} [constraint=false, color=blue];"
    yield "}"


def _labels(graph: ExecutionGraph, program: Sequence[Event]) -> Iterator[tuple[Event, str]]:
    for e in program:
        if isinstance(e, Loop):
            yield e, f"{e.turns} times"
            yield from _labels(graph, e.body)
        elif isinstance(e, Compute):
            yield e, f"{graph.phases[e.phase]}\\n{seconds(e.seconds)}"
        elif isinstance(e, (Send, Receive)):
            other = f"to {e.to}" if isinstance(e, Send) else f"from {e.source}"
            yield e, f"{type(e).__name__.lower()} {size(e.m)}\\n{other}"
        elif isinstance(e, Collective):
            yield e, f"{e.kind}\\n{size(e.m)}"
        else:
            yield e, f"wait\\n{graph.phases[e.phase]}"
