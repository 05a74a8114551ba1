"""Timeline and critical path of a simulation.

The critical path is followed backwards from the end of the last rank: through its work
and, where it waited, along the message to the sender.

Timelines are written in Chrome's trace format: one process per host, one thread per rank.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from fembench.base.files import write_atomic
from fembench.model.engine import SegmentRun, SimulationOutcome, Turn
from fembench.model.machine import Machine
from fembench.model.plan import Node, SimulationPlan

NETWORK = "network"  # time of messages between Os and Or


class Bar(NamedTuple):
    """The activity of a rank from `begin` to `end`, in seconds."""

    rank: int
    begin: float
    end: float
    phase: int
    kind: str  # compute, overhead, wait


class PathSegment(NamedTuple):
    """A segment of the critical path."""

    rank: int
    seconds: float
    phase: str  # 'network' between ranks
    kind: str  # compute, overhead, network


def timeline(result: SimulationOutcome, least: float = 0.0) -> Iterator[Bar]:
    """The bars of all simulated turns that are longer than `least` seconds."""
    for run in result.runs:
        for turn in run.turns:
            for k, node in enumerate(run.segment.nodes):
                for bar in _bars(node, float(turn.begin[k]), float(turn.end[k])):
                    if bar.end - bar.begin > least:
                        yield bar


def _bars(node: Node, begin: float, end: float) -> Iterator[Bar]:
    for step in node.steps:
        t = begin + step.offset
        yield Bar(node.rank, t, t + step.seconds, step.phase, "compute" if step.compute else "overhead")
    if node.phase >= 0:
        receiving = sum(overhead for _, overhead in node.waits)
        yield Bar(node.rank, begin + node.work, end - receiving, node.phase, "wait")
        yield Bar(node.rank, end - receiving, end, node.phase, "overhead")


def critical_path(plan: SimulationPlan, result: SimulationOutcome) -> list[PathSegment]:
    """The path to the end of the last rank. Skipped turns repeat the last period."""
    rank = int(result.finish.argmax())
    path: list[PathSegment] = []
    for run in reversed(result.runs):
        rank = _back(plan, run, rank, path)
    return path[::-1]


def by_phase(path: list[PathSegment]) -> dict[str, float]:
    """{phase: seconds} of a path, longest first."""
    found: dict[str, float] = defaultdict(float)
    for link in path:
        found[link.phase] += link.seconds
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def by_rank(path: list[PathSegment]) -> dict[int, float]:
    """{rank: seconds of computing on the path}, longest first."""
    found: dict[int, float] = defaultdict(float)
    for link in path:
        if link.kind == "compute":
            found[link.rank] += link.seconds
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _order(run: SegmentRun) -> list[int]:
    """The number of the simulated turn that represents each turn."""
    first = len(run.turns) - run.rest
    repeated = list(range(first - run.period, first)) * run.repeats if run.repeats else []
    return [*range(first), *repeated, *range(first, len(run.turns))]


def _back(plan: SimulationPlan, run: SegmentRun, rank: int, path: list[PathSegment]) -> int:
    """Follow the path back through a segment from `rank`;
    return the rank where it begins."""
    segment = run.segment
    for number in reversed(_order(run)):
        turn = run.turns[number]
        k = int(segment.last[rank])
        while k >= 0:
            rank, k = _through(plan, run, turn, k, path)
    return rank


def _through(
    plan: SimulationPlan, run: SegmentRun, turn: Turn, k: int, path: list[PathSegment]
) -> tuple[int, int]:
    """Append a node and the message that it waited for; the (rank, node) before it."""
    segment, node = run.segment, run.segment.nodes[k]
    bound = int(turn.bound[k])
    waited_from = turn.begin[k] + node.work if bound < 0 else turn.arrived[k]
    if node.phase >= 0:
        _add(path, node.rank, float(turn.end[k] - waited_from), plan.phases[node.phase], "overhead")
    if bound < 0:
        _add_steps(plan, node, node.work, path)
        return node.rank, int(segment.before[k])
    message = segment.messages[bound]
    sides = [message.sent] + ([message.posted] if message.posted else [])
    source, offset = max(sides, key=lambda side: turn.begin[side[0]] + side[1])
    _add(path, node.rank, float(turn.arrived[k] - turn.begin[source] - offset), NETWORK, "network")
    _add_steps(plan, segment.nodes[source], offset, path)
    return segment.nodes[source].rank, int(segment.before[source])


def _add_steps(plan: SimulationPlan, node: Node, until: float, path: list[PathSegment]) -> None:
    """The node's activities before `until`, latest first."""
    for step in reversed(node.steps):
        if step.offset < until:
            kind = "compute" if step.compute else "overhead"
            _add(path, node.rank, step.seconds, plan.phases[step.phase], kind)


def _add(path: list[PathSegment], rank: int, seconds: float, phase: str, kind: str) -> None:
    if seconds:
        path.append(PathSegment(rank, seconds, phase, kind))


def write_chrome(
    spans: Iterable[tuple[int, float, float, dict[str, Any]]],
    hosts: Sequence[str],
    placed: Sequence[int],
    path: Path | str,
    **notes: object,
) -> None:
    """Spans (rank, begin, end, what) in Chrome's format: a process per host, a thread
    per rank.

    `placed`: [rank] number of its host. A span has a `name`, a
    `cat`egory and perhaps `args`.
    """
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": host, "args": {"name": hosts[host]}}
        for host in sorted(set(placed))
    ]
    for rank, host in enumerate(placed):
        name = {"name": f"rank {rank}"}
        events.append({"ph": "M", "name": "thread_name", "pid": host, "tid": rank, "args": name})
    for rank, begin, end, what in spans:
        place = {"ph": "X", "pid": placed[rank], "tid": rank}
        events.append(place | what | {"ts": 1e6 * begin, "dur": 1e6 * (end - begin)})
    write_atomic(path, msgspec.json.encode({"displayTimeUnit": "ns", **notes, "traceEvents": events}))


def write_timeline(bars: Iterable[Bar], phases: Sequence[str], machine: Machine, path: Path | str) -> None:
    """Bars of a simulation for ui.perfetto.dev."""
    spans = ((b.rank, b.begin, b.end, {"name": phases[b.phase], "cat": b.kind}) for b in bars)
    write_chrome(spans, machine.names, machine.host, path)
