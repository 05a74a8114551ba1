"""The tables behind the prediction of a compiled program: ranks, communication, loops, functions, calls."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fembench.base.tables import table
from fembench.base.units import digits, seconds, size
from fembench.model.engine import SimulationOutcome
from fembench.model.graph import Collective, Send, flat
from fembench_studies.binaries import mpi_calls
from fembench_studies.binaries.binary import reached_by
from fembench_studies.binaries.expected import Expected
from fembench_studies.binaries.walk import Given, Point, Walk

LOOPS = ("function", "loop at", "count", "mean", "limit", "iterations per execution", "in all", "remark")


def rank_rows(expected: Expected) -> str:
    """Computing, messages and end of each rank; no end if ranks share cores."""
    least, most = expected.computing(), expected.computing(contended=True)
    outcome = expected.simulated() if expected.link else None
    finish = expected.finishes(expected.machine()) if expected.link and expected.shared == 1 else None
    heads = ["rank", "computing", "interval", "sent", "bytes", "transmission", "ends"]
    rows = []
    for rank, program in enumerate(expected.graph("").programs):
        found = expected.interval(least[:, rank], most[:, rank])
        sent = [event.m for event in flat(program) if isinstance(event, (Send, Collective))]
        row = [rank, seconds(found.value), f"{seconds(found.low)} to {seconds(found.high)}", len(sent)]
        row.append(size(sum(sent)))
        if outcome:
            row.append(seconds(sum(m.arrives - m.sent for m in log(outcome) if m.source == rank)))
        if finish is not None:
            row.append(seconds(float(np.median(finish[:, rank]))))
        rows.append(row)
    return table(heads[: len(rows[0])], rows, align="r" * len(rows[0]))


def point_rows(expected: Expected) -> str:
    """The communication points, and which branches on the rank lead to them."""
    walks = expected.walks[0]
    found: dict[tuple[str, int], list[Any]] = {}
    for walk in walks:
        for message in walk.messages:
            found.setdefault((message.function, message.address), []).append((walk.rank, message))
    rows = []
    for (function, address), passed in sorted(found.items(), key=lambda item: item[0][1]):
        ranks = sorted({rank for rank, _ in passed})
        sizes = sorted({message.event.m for _, message in passed if hasattr(message.event, "m")})
        name = passed[0][1].name
        calls = len(passed) // (2 if name == "MPI_Sendrecv" else 1)
        branches = reached_by(expected.program, passed[0][1].callers)
        told = [_decision(walks, b) for b in sorted(branches) if any(b in w.decisions for w in walks)]
        bytes_ = (
            ""
            if not sizes
            else size(sizes[0])
            if len(sizes) == 1
            else f"{size(sizes[0])} to {size(sizes[-1])}"
        )
        rows.append(
            [name, function, f"{address:x}", spans(ranks), calls, bytes_, "; ".join(told) or "every rank"]
        )
    return table(
        ["call", "function", "at", "ranks", "calls", "bytes each", "reached by"], rows, align="llrlrrl"
    )


def _decision(walks: Sequence[Walk], branch: int) -> str:
    """'branch at 13bc, taken by ranks 1-3'."""
    taken = [walk.rank for walk in walks if True in walk.decisions.get(branch, ())]
    who = f"rank{'s' if len(taken) > 1 else ''} {spans(taken)}" if taken else "no rank"
    return f"branch at {branch:x}, taken by {who}"


def loop_rows(expected: Expected) -> str:
    """The loops: known, bounded or unknown counts, with mean and limit."""
    rows = []
    walks = [walk for draw in expected.walks for walk in draw]
    first = expected.walks[0]
    for header in sorted({header for walk in walks for header in walk.loops}):
        points = [walk.loops[header] for walk in walks if header in walk.loops]
        turns = [(w.rank, w.totals.get(("turns", header), 0.0)) for w in first]
        times = sum(w.totals.get(("entries", header), 0.0) for w in first)
        mean = sum(n for _, n in turns) / times if times else 0.0
        rows.append(_loop_row(expected.given, header, points, mean, turns))
    return table(LOOPS, rows, align="lrlrrrll") if rows else "no loops"


def flag(points: Sequence[Point]) -> str:
    """'known', 'bounded' (a known end, and others) or 'unknown'."""
    exits = set().union(*(point.exits for point in points))
    return "known" if "drawn" not in exits else "bounded" if "known" in exits else "unknown"


def _loop_row(
    given: Given, header: int, points: Sequence[Point], mean: float, turns: Sequence[tuple[int, float]]
) -> list[object]:
    kind = flag(points)
    limit = max(point.most for point in points)
    if kind != "known":
        loops = given.each.get(header, given.loops)
        bound = min(point.bound for point in points)
        limit = min(bound, loops.limit if loops else bound)
    low, high = min(point.least for point in points), max(point.most for point in points)
    limited, by = sum(point.limited for point in points), _by_ranks(turns)
    remark = "counted" if kind != "known" and header in given.counted else "stated" if kind != "known" else ""
    if limited and kind != "known":
        remark += "; reaches its limit"
    each = f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"
    known = f"{limit:.0f}" if limit < math.inf else None
    return [points[0].function, f"{header:x}", kind, digits(mean), known, each, by, remark]


def _by_ranks(values: Sequence[tuple[int, float]]) -> str:
    """'0: 3; 1-3: 20', values of 0 left out."""
    ranks: dict[float, list[int]] = {}
    for rank, value in values:
        if value:
            ranks.setdefault(round(value), []).append(rank)
    return "; ".join(f"{spans(who)}: {value:.0f}" for value, who in ranks.items())


def function_rows(expected: Expected) -> str:
    """Calls and own time of the functions, by rank."""
    rows = []
    for walk in expected.walks[0]:
        own = _own_times(expected, walk)
        for name, spent in sorted(own.items(), key=lambda item: -item[1]):
            called = walk.totals.get(("call", name), 0.0) or float(name == expected.program.entry.name)
            rows.append([walk.rank, name, f"{called:.0f}", seconds(spent), seconds(spent / max(called, 1))])
    return table(["rank", "function", "calls", "own time", "per call"], rows, align="rlrrr")


def _own_times(expected: Expected, walk: Walk) -> dict[str, float]:
    """function -> seconds of its own: the time of the rank, shared by costs of instructions."""
    found: dict[str, float] = {}
    for (kind, key), n in walk.totals.items():
        if kind == "block":
            name = expected.program.owner[int(key)].name
            found[name] = found.get(name, 0.0) + n * expected.prices.block[int(key)]
    if not expected.repetitions:
        return found
    spent = float(np.median(expected.computing()[:, walk.rank]))
    return {name: cost * spent / max(sum(found.values()), 1e-300) for name, cost in found.items()}


def library_rows(expected: Expected) -> str:
    """Calls of libraries, and their cost."""
    names = sorted({str(k) for walk in expected.walks[0] for kind, k in walk.totals if kind == "library"})
    rows = []
    for name in names:
        calls = [(w.rank, w.totals.get(("library", name), 0.0)) for w in expected.walks[0]]
        rows.append([name, _by_ranks(calls), *_cost_of(expected, name)])
    return table(["call", "calls by rank", "cost", "source"], rows, align="llrl")


def _cost_of(expected: Expected, name: str) -> tuple[str, str]:
    """The cost of a call, and who says so."""
    if mpi_calls.known(name):
        return "as a message", ""
    if name in mpi_calls.FREE:
        return seconds(0.0), "start and queries are free"
    if expected.repetitions:
        return "", "in the computing"
    cost = expected.given.calls.get(name)
    return seconds(expected.prices.calls[name]), "assumed" if cost is None else "--calls"


def branch_rows(expected: Expected) -> str:
    """The branches that were drawn, and their probabilities."""
    unknown: Mapping[int, str] = {a: f for draw in expected.walks for w in draw for a, f in w.unknown.items()}
    rows = []
    for address, function in sorted(unknown.items()):
        p = expected.given.branches.get(address)
        source = "assumed" if p is None else "counted" if address in expected.given.counted else "stated"
        rows.append([function, f"{address:x}", 0.5 if p is None else p, source])
    return table(["function", "branch at", "taken", "source"], rows, align="lrrl") if rows else ""


class Logged(NamedTuple):
    """A message of the simulation."""

    source: int
    target: int
    m: int
    sent: float
    arrives: float


def log(outcome: SimulationOutcome) -> Iterator[Logged]:
    """All messages of a simulation without loops; collectives as their messages."""
    for run in outcome.runs:
        for turn in run.turns:
            for message in run.segment.messages:
                node, offset = message.sent
                ready = sent = float(turn.begin[node]) + offset
                if message.posted is not None:
                    ready = max(sent, float(turn.begin[message.posted[0]]) + message.posted[1])
                yield Logged(message.source, message.target, message.m, sent, ready + message.latency)


def message_rows(outcome: SimulationOutcome) -> str:
    """The log of all messages, in the order of their sending."""
    rows = [
        [m.source, m.target, size(m.m), seconds(m.sent), seconds(m.arrives)]
        for m in sorted(log(outcome), key=lambda m: m.sent)
    ]
    return table(["from", "to", "bytes", "sent", "arrives"], rows, align="rrrrr")


def spans(ranks: Sequence[int]) -> str:
    """'0-2, 5'."""
    parts: list[list[int]] = []
    for rank in sorted(ranks):
        if parts and rank == parts[-1][1] + 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
