"""The tables behind the prediction of a compiled program."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fembench.base.tables import table
from fembench.base.units import digits, seconds, size
from fembench.model.engine import SimulationOutcome
from fembench.model.graph import Collective, Send, flat
from fembench_studies.binaries.counts import deciding, distributions, uncounted
from fembench_studies.binaries.executable import called
from fembench_studies.binaries.expected import Expected
from fembench_studies.binaries.rehearsal import WAIT


def rank_rows(expected: Expected) -> str:
    """Computing, messages and end of each rank."""
    least, most = expected.computing(), expected.computing(contended=True)
    outcome = expected.simulated() if expected.link else None
    finish = expected.finishes(expected.machine()) if expected.link else None
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


class Passage(NamedTuple):
    """A passage of a communication point."""

    rank: int
    m: int  # bytes


def passages(expected: Expected) -> dict[int, list[Passage]]:
    """Vertex -> its passages, of the first repetition or draw; waits are none."""
    found: dict[int, list[Passage]] = {}
    for rank, walk in enumerate(expected.walks[0] if expected.walks else ()):
        for address, event in walk.messages:
            if hasattr(event, "m"):
                found.setdefault(address, []).append(Passage(rank, event.m))
    calls = {v.end: v.start for v in expected.program.own if v.kind in ("call", "message")}
    for rank, rows in enumerate(expected.repetitions[0].rows if expected.repetitions else ()):
        for row in rows[rows["kind"] != WAIT].tolist():
            found.setdefault(calls.get(row[1], row[1]), []).append(Passage(rank, row[2]))
    return dict(sorted(found.items()))


def point_rows(expected: Expected) -> str:
    """The communication points and, if branches were counted, those that decide which ranks pass them."""
    rows, decided = [], deciding(expected.counts)
    for address, passed in passages(expected).items():
        function = expected.program.owner.get(address)
        name = called(function.vertices[address]) if function else ""
        sizes = [size(m) for m in sorted({one.m for one in passed})]
        each = sizes[0] if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        ranks = spans(sorted({one.rank for one in passed}))
        row = [name, function.name if function else "", f"{address:x}", ranks, len(passed), each]
        if expected.counts:
            told = [
                f"branch at {b:x}, taken by {_who(decided[b])}" for b in reaching(expected, address, decided)
            ]
            row.append("; ".join(told) or "every rank")
        rows.append(row)
    heads = ["call", "function", "at", "ranks", "events", "bytes each", "reached by"]
    return table(heads[: len(rows[0])], rows, align="llrlrrl"[: len(rows[0])]) if rows else "none"


def reaching(expected: Expected, address: int, decided: Mapping[int, Sequence[int]]) -> list[int]:
    """The branches on which ranks differ, and on which it depends whether a vertex is reached."""
    program, found, todo, seen = expected.program, set[int](), [address], set[int]()
    while todo:
        at = todo.pop()
        if at in seen or at not in program.owner:
            continue
        seen.add(at)
        function = program.owner[at]
        found |= program.flow(function).controls(at)
        calls = [v for v in program.own if program.callee(v) is function]
        todo += [v.start for v in calls if any(rank.blocks[v.start] for rank in expected.counts)]
    return sorted(found & set(decided))


def _who(ranks: Sequence[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {spans(ranks)}"


def loop_rows(expected: Expected) -> str:
    """The loops: iterations per execution, and of all."""
    rows = []
    for name, (mean, most) in distributions(expected.counts)[0].items():
        header = int(name, 16)
        turns = [(r, c.loops[header].turns) for r, c in enumerate(expected.counts) if header in c.loops]
        function = expected.program.owner[header].name
        rows.append([function, name, digits(mean), most, _by_ranks(turns), _limited(expected, name, most)])
    heads = ("function", "loop at", "mean", "longest", "iterations in all", "remark")
    return table(heads, rows, align="lrrrll") if rows else "no loops"


def _limited(expected: Expected, header: str, most: int) -> str:
    """Whether drawn iterations reached their limit: such loops may be bottlenecks (3.3.1)."""
    loops = expected.given.loops.get(header, expected.given.loop)
    return "reaches its limit" if expected.walks and loops and most >= loops.limit else ""


def _by_ranks(values: Sequence[tuple[int, float]]) -> str:
    """'0: 3; 1-3: 20', values of 0 left out."""
    ranks: dict[float, list[int]] = {}
    for rank, value in values:
        if value:
            ranks.setdefault(round(value), []).append(rank)
    return "; ".join(f"{spans(who)}: {value:.0f}" for value, who in ranks.items())


def branch_rows(expected: Expected) -> str:
    """The branches that ranks take sometimes, and how often; without those that leave loops."""
    rows, program, decided = [], expected.program, deciding(expected.counts)
    for address in sorted({a for rank in expected.counts for a in rank.branches} - set(decided)):
        function = program.owner[address]
        flow, v = program.flow(function), function.vertices[address]
        if any(flow.exits(loop, v) for loop in flow.loops.values() if address in loop.body):
            continue
        each = [rank.branches[address].times for rank in expected.counts if address in rank.branches]
        times, taken = sum(map(sum, each)), sum(one[1] for one in each)
        if 0 < taken < times:
            rows.append([function.name, f"{address:x}", times, digits(taken / times)])
    return table(["function", "branch at", "passed", "taken"], rows, align="lrrr") if rows else ""


def function_rows(expected: Expected) -> str:
    """Calls and own time of the functions, by rank."""
    rows, computing = [], expected.computing()
    for rank, counts in enumerate(expected.counts):
        own: dict[str, float] = {}
        calls = {expected.program.entry.name: 1.0}
        for v in expected.program.own:
            n, function, callee = (
                counts.blocks[v.start],
                expected.program.owner[v.start],
                expected.program.callee(v),
            )
            own[function.name] = own.get(function.name, 0.0) + n * expected.prices[v.start]
            if callee:
                calls[callee.name] = calls.get(callee.name, 0.0) + n
        spent = float(np.median(computing[:, rank])) / max(sum(own.values()), 1e-300)
        for name, cost in sorted(own.items(), key=lambda item: -item[1]):
            times = calls.get(name, 0.0)
            if cost:
                each = seconds(cost * spent / max(times, 1))
                rows.append([rank, name, f"{times:.0f}", seconds(cost * spent), each])
    return table(["rank", "function", "calls", "own time", "per call"], rows, align="rlrrr")


def uncounted_rows(expected: Expected) -> str:
    """What is not counted, because it is reached through a pointer, if at all."""
    found = uncounted(expected.program, expected.counts) if expected.repetitions else []
    rows = [[expected.program.owner[v.start].name, f"{v.start:x}", v.kind] for v in found]
    return table(["function", "at", "from"], rows, align="lrl") if rows else ""


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
