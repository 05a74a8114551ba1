"""The execution graph of an MPI job: the events of every rank, in order.

After the execution graphs of Calzeta and de Souza (2008), with ranks instead of
instructions. The program of a rank is a sequence of events; a loop has a body and a
number of turns. Durations are those of the rank that was recorded, or for which the
graph was made. Phases are indices into ExecutionGraph.phases.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias, Union

import msgspec

from fembench.base.errors import InputError
from fembench.base.files import write_atomic
from fembench.records.schema import read

GRAPH_SCHEMA = 2  # 1 had the residual in its programs
Kind = Literal["allreduce", "allgather", "bcast", "reduce", "barrier"]


class _Event(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Base of all events."""


class Compute(_Event, tag="compute", frozen=True):
    phase: int
    seconds: float
    unit: str = ""  # of the work done: blocks, dofs, …
    work: float = 0.0


class Send(_Event, tag="send", frozen=True):
    """A message to another rank. If blocking, returns with a free buffer; else: Wait."""

    to: int
    m: int  # bytes
    phase: int
    tag: int = 0
    blocking: bool = False


class Receive(_Event, tag="receive", frozen=True):
    """A message from another rank. If blocking, returns on arrival; else a Wait follows."""

    source: int
    m: int
    phase: int
    tag: int = 0
    blocking: bool = False


class Wait(_Event, tag="wait", frozen=True):
    """A wait for all pending non-blocking messages; with a tag, for those with it."""

    phase: int
    tag: int | None = None


class Collective(_Event, tag="collective", frozen=True):
    kind: Kind
    m: int  # bytes; for an allgather, those of each rank
    phase: int
    root: int = 0


class Loop(_Event, tag="loop", frozen=True):
    turns: int
    body: tuple["Event", ...]


Event: TypeAlias = Union[Compute, Send, Receive, Wait, Collective, Loop]  # noqa: UP007 (msgspec resolves it)
Program: TypeAlias = tuple[Event, ...]


class ExecutionGraph(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The programs of all ranks."""

    schema: int = GRAPH_SCHEMA
    phases: tuple[str, ...]
    programs: tuple[Program, ...]  # [rank]
    hosts: tuple[str, ...] = ()  # [rank] host on which it was recorded; (): not recorded
    source: str = ""  # record, mesh and shares, executable
    mesh_hash: str = ""
    iterations: int = 0  # of CG; 0: not a graph of CG
    message: tuple[float, float] | None = None  # latency and seconds per byte observed in a run
    note: str = ""  # agreement of the clocks in that run, and gaps in its trace
    residual: float = 0.0  # seconds per iteration that the graph does not explain

    @property
    def ranks(self) -> int:
        return len(self.programs)


def flat(program: Sequence[Event]) -> Iterator[Event]:
    """All events in order, with loops unrolled."""
    for event in program:
        if isinstance(event, Loop):
            for _ in range(event.turns):
                yield from flat(event.body)
        else:
            yield event


def count(program: Sequence[Event]) -> int:
    """Number of events, with each body of a loop counted once."""
    return sum(1 + (count(e.body) if isinstance(e, Loop) else 0) for e in program)


def length(program: Sequence[Event]) -> int:
    """Number of events with loops unrolled."""
    return sum(e.turns * length(e.body) if isinstance(e, Loop) else 1 for e in program)


def check(graph: ExecutionGraph, where: str = "graph") -> None:
    """Raises InputError that names rank and event, if the graph has an invalid one."""
    if not graph.programs:
        raise InputError(f"{where}: programs = []: expected that of at least one rank")
    for rank, program in enumerate(graph.programs):
        for event in once(program):
            problem = _problem(event, graph)
            if problem:
                raise InputError(f"{where}: rank {rank}: {event}: {problem}")


def once(program: Sequence[Event]) -> Iterator[Event]:
    """All events in order, loops and their bodies once."""
    for event in program:
        yield event
        if isinstance(event, Loop):
            yield from once(event.body)


def _problem(event: Event, graph: ExecutionGraph) -> str:
    if isinstance(event, Loop):
        return "" if event.turns >= 0 else "expected 0 or more turns"
    if not 0 <= event.phase < len(graph.phases):
        return f"expected a phase below {len(graph.phases)}"
    if isinstance(event, Compute):
        return "" if 0 <= event.seconds < float("inf") else "expected seconds of 0 or more"
    if isinstance(event, Wait):
        return ""
    peers = {Send: "to", Receive: "source", Collective: "root"}
    peer = getattr(event, peers[type(event)])
    if not 0 <= peer < graph.ranks or event.m < 0:
        return f"expected ranks below {graph.ranks} and sizes of 0 or more"
    return ""


def save_graph(graph: ExecutionGraph, path: Path | str) -> None:
    """Write a graph as JSON, whole or not at all."""
    write_atomic(path, msgspec.json.encode(graph))


def load_graph(path: Path | str) -> ExecutionGraph:
    """The graph in a file. Raises InputError for anything else."""
    graph = read(path, ExecutionGraph, GRAPH_SCHEMA, "an execution graph", has="programs", verb="trace")
    check(graph, str(path))
    return graph
