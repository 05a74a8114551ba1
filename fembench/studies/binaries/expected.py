"""What a compiled program is expected to do: its time with an interval, and the tables behind it.

Counts that were drawn are drawn several times; the interval covers nine of ten of these draws, and the
uncertainty of the costs of blocks.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fembench.base.tables import table
from fembench.base.units import digits, plural, seconds, size
from fembench.model.engine import SimulationOutcome, simulate
from fembench.model.graph import Collective, Compute, ExecutionGraph, Send
from fembench.model.machine import Machine
from fembench.model.planner import make_plan
from fembench.studies.binaries.binary import Executable, Prices, graph_of, reached_by
from fembench.studies.binaries.segments import listing, measure_segments, name_of
from fembench.studies.binaries.walker import Given, Point, Walk

Array = npt.NDArray[np.float64]
COSTS = 0.10  # uncertainty of the costs of blocks
SMALL = 1e-4  # of all computing: segments below it are not timed
LOOPS = ("function", "loop at", "count", "mean", "limit", "iterations per execution", "in all", "remark")


class TimeInterval(NamedTuple):
    """A value and its interval, in seconds."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Expected:
    """The walks of all processes, priced."""

    program: Executable
    given: Given
    walks: list[list[Walk]]  # [draw][rank]
    prices: Prices
    timed: float  # fraction of computing whose segments were timed, not added up by instructions

    @property
    def drawn(self) -> bool:
        """Whether any count is random."""
        return any(walk.drawn for walk in self.walks[0])

    def graph(self, source: str, draw: int = 0) -> ExecutionGraph:
        """The execution graph of a draw."""
        return graph_of(self.walks[draw], self.prices, source)

    def computing(self) -> Array:
        """(draws, ranks) seconds."""
        graphs = (graph_of(walks, self.prices, "") for walks in self.walks)
        return np.array([[_busy(program) for program in graph.programs] for graph in graphs])

    def finishes(self, machine: Machine) -> Array:
        """(draws, ranks) seconds until each rank ends."""
        return np.array([self.simulated(machine, draw).finish for draw in range(len(self.walks))])

    def simulated(self, machine: Machine, draw: int = 0) -> SimulationOutcome:
        """The simulation of a draw."""
        return simulate(make_plan(self.graph("", draw), machine))

    def interval(self, draws: Array) -> TimeInterval:
        """The mean over draws; from the 5th to the 95th percentile, widened by the uncertainty of costs."""
        low, high = np.percentile(draws, [5, 95])
        return TimeInterval(float(np.mean(draws)), float(low) * (1 - COSTS), float(high) * (1 + COSTS))


def _busy(program: Sequence[Any]) -> float:
    return sum(event.seconds for event in program if isinstance(event, Compute))


def expect(
    program: Executable,
    ranks: int,
    given: Given,
    *,
    seed: int = 0,
    draws: int = 20,
    timed: dict[str, float] | None = None,
    measure: bool = True,
) -> Expected:
    """Walk, draw and price. `timed`: name -> seconds of segments, to which measured ones are added.

    Raises InputError.
    """
    walks = [program.walks(ranks, given, seed)]
    if any(walk.drawn for walk in walks[0]):
        walks += [program.walks(ranks, given, seed + k) for k in range(1, draws)]
    timed = {} if timed is None else timed
    summed = [program.by_class(segment) for segment in program.segments]
    executed = np.zeros(len(summed))
    for walk in (walk for draw in walks for walk in draw):
        for part in walk.parts:
            for (kind, key), n in part.items() if isinstance(part, dict) else ():
                if kind == "segment":
                    executed[int(key)] += n
    share = executed * summed / max(float(executed @ np.array(summed)), 1e-300)
    if measure and program.image.wide:
        timed |= measure_segments(program, timed, [k for k in range(len(summed)) if share[k] > SMALL])
    names = [name_of(program, s) if listing(program, s) else "" for s in program.segments]
    known = np.array([name in timed for name in names])
    costs = [timed.get(name, cost) for name, cost in zip(names, summed)]
    prices = Prices(costs.__getitem__, given.calls)
    return Expected(program, given, walks, prices, float(share[known].sum()) if len(share) else 1.0)


# ------------------------------------------------------------------------------------------ tables


def rank_rows(expected: Expected, machine: Machine | None) -> str:
    """Computing, end and messages of each rank."""
    computing = expected.computing()
    heads = [
        "rank",
        "computing",
        "interval" if expected.drawn else "",
        "sent",
        "bytes",
        "transmission",
        "ends",
    ]
    outcome = expected.simulated(machine) if machine else None
    finish = expected.finishes(machine) if machine else None
    rows = []
    for rank, walk in enumerate(expected.walks[0]):
        found = expected.interval(computing[:, rank])
        sent = [m.event for m in walk.messages if isinstance(m.event, (Send, Collective))]
        rows.append(
            [
                rank,
                seconds(found.value),
                f"{seconds(found.low)} to {seconds(found.high)}",
                len(sent),
                size(sum(event.m for event in sent)),
                seconds(sum(m.arrives - m.sent for m in log(outcome) if m.source == rank))
                if outcome
                else None,
                seconds(float(finish[:, rank].mean())) if finish is not None else None,
            ]
        )
    keep = [k for k, head in enumerate(heads) if head and (machine or head not in ("transmission", "ends"))]
    return table([heads[k] for k in keep], [[row[k] for k in keep] for row in rows], align="r" * len(keep))


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
    """function -> seconds while it is on top of the stack; a segment is shared by costs of instructions."""
    program = expected.program
    found: dict[str, float] = {}
    for part in walk.parts:
        for (kind, key), n in part.items() if isinstance(part, dict) else ():
            if kind != "segment":
                continue
            segment = program.segments[int(key)]
            scale = n * expected.prices.segment(int(key)) / max(program.by_class(segment), 1e-300)
            for address in segment.trace:
                owner = program.owner[address]
                found[owner.name] = found.get(owner.name, 0.0) + scale * owner.vertices[address].cost
    return found


def library_rows(expected: Expected) -> str:
    """Calls of libraries, and their cost."""
    names = sorted({str(k) for walk in expected.walks[0] for kind, k in walk.totals if kind == "library"})
    rows = []
    for name in names:
        calls = [(w.rank, w.totals.get(("library", name), 0.0)) for w in expected.walks[0]]
        cost = expected.given.calls.get(name)
        message = any(m.name == name for walk in expected.walks[0] for m in walk.messages)
        rows.append([name, _by_ranks(calls), "as a message" if message else seconds(cost or 0.0)])
        rows[-1].append("" if message else "--calls" if cost is not None else "start and queries are free")
    return table(["call", "calls by rank", "cost", "source"], rows, align="llrl")


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


def summary(expected: Expected, machine: Machine | None, source: str) -> str:
    """The prediction in a few lines."""
    ranks = len(expected.walks[0])
    draws = expected.finishes(machine).max(axis=1) if machine else expected.computing().max(axis=1)
    found = expected.interval(draws)
    what = "predicted time" if machine else "longest computing"
    lines = [f"{source} on {plural(ranks, 'rank')}: {what} {seconds(found.value)}, "]
    lines[0] += f"interval {seconds(found.low)} to {seconds(found.high)}"
    if expected.drawn:
        lines.append(
            f"interval: nine of ten of {len(expected.walks)} draws of the counts, "
            f"and {COSTS:.0%} for costs of blocks"
        )
    else:
        lines.append(f"interval: every count is known; {COSTS:.0%} for costs of blocks")
    lines.append(f"costs: {expected.timed:.1%} of the computing in timed segments, the rest by instruction")
    return "\n".join(lines)
