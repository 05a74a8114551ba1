"""How often a program passes its blocks and iterates its loops, from the outcomes of its branches.

A rehearsal counts the branches: a library that is loaded before the program puts a breakpoint on each,
counts there, and continues as the branch would (`count_branches.c.txt`). That needs no source and no
symbols of a debugger; each passage takes a few microseconds. All other blocks follow, since what enters a
block leaves it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fembench_studies.binaries.blocks import Vertex, successors
from fembench_studies.binaries.executable import ENDS, Executable, called
from fembench_studies.binaries.flow import Flow, NaturalLoop
from fembench_studies.binaries.given import Loops


@dataclass
class Passed:
    """The outcomes of a branch: [not taken, taken]."""

    times: list[int]
    longest: list[int]  # runs of equal outcomes


@dataclass(frozen=True)
class LoopCount:
    """Executions of a loop by one rank."""

    entries: float
    turns: float  # iterations, over all executions
    most: float  # iterations of the longest execution


@dataclass(frozen=True)
class RankCounts:
    """What one rank did."""

    blocks: dict[int, float]  # vertex -> passes
    branches: dict[int, Passed]  # those that were passed
    loops: dict[int, LoopCount]  # where a loop is entered -> its executions


def counts_of(program: Executable, branches: dict[int, Passed]) -> RankCounts:
    """The counts that follow from the outcomes of all branches of a rank."""
    blocks = passes(program, branches)
    return RankCounts(blocks, branches, loop_counts(program, blocks, branches))


def passes(program: Executable, branches: Mapping[int, Passed]) -> dict[int, float]:
    """Vertex -> passes; 0 for blocks that are reached through a pointer only."""
    leading = _leading(program)
    blocks = {a: f.vertices[a] for a, f in program.owner.items()}
    never = Passed([0, 0], [0, 0])
    outcomes = {a: branches.get(a, never).times for a, v in blocks.items() if v.kind == "branch"}
    found: dict[int, float] = {a: sum(times) for a, times in outcomes.items()}
    todo = [a for a in blocks if a not in found]
    while todo:
        ready = [a for a in todo if all(u in found for u, _ in leading[a])]
        if not ready:
            break
        for a in ready:
            begins = float(a == program.entry.start)
            found[a] = begins + sum(outcomes[u][way] if way >= 0 else found[u] for u, way in leading[a])
        todo = [a for a in todo if a not in found]
    return found | dict.fromkeys(todo, 0.0)


def _leading(program: Executable) -> dict[int, list[tuple[int, int]]]:
    """Vertex -> (vertex before it, outcome that leads here: 0, 1, or -1 for all that is no branch)."""
    found: dict[int, list[tuple[int, int]]] = {a: [] for a in program.owner}
    for function in program.functions.values():
        for v in function.vertices.values():
            if callee := program.callee(v):
                found[callee.start].append((v.start, -1))
            if called(v) in ENDS and v.kind == "call":
                continue
            for after in successors(function, v):
                if v.kind != "branch":
                    found[after].append((v.start, -1))
                    continue
                if after == v.target:
                    found[after].append((v.start, 1))
                if after == v.end:
                    found[after].append((v.start, 0))
    return found


def uncounted(program: Executable, counts: Sequence[RankCounts]) -> list[Vertex]:
    """Calls and jumps through pointers that a rank passed, and first blocks of functions that nothing calls.

    What such calls and jumps lead to is not counted.
    """
    through = [v for v in program.own if v.kind in ("call", "jump") and v.target is None and not v.name]
    callees = {callee.start for v in program.own if (callee := program.callee(v))} | {program.entry.start}
    never = [v for v in program.own if v.start == program.owner[v.start].start and v.start not in callees]
    return [v for v in through if any(rank.blocks[v.start] for rank in counts)] + never


def loop_counts(
    program: Executable, blocks: Mapping[int, float], branches: Mapping[int, Passed]
) -> dict[int, LoopCount]:
    """Where a loop is entered -> its executions, of the loops that were left by a branch."""
    found = {}
    for function in program.functions.values():
        flow = program.flow(function)
        for header, loop in flow.loops.items():
            count = _executions(flow, loop, blocks[header], branches)
            if count is not None:
                found[header] = count
    return found


def _executions(
    flow: Flow, loop: NaturalLoop, passed: float, branches: Mapping[int, Passed]
) -> LoopCount | None:
    """The executions of a loop whose first block was passed so often."""
    entries, last, longest = 0, 0, math.inf
    for address in loop.body & branches.keys():
        p, v = branches[address], flow.function.vertices[address]
        if flow.exits(loop, v):
            on, late = int(v.target in loop.body), flow.late(loop, address)
            entries += p.times[1 - on]
            last += late * p.times[1 - on]  # iterations that were over when the loop was left
            longest = min(longest, p.longest[on] + late)
    if not entries:
        return None
    turns = passed - entries + last
    return LoopCount(entries, turns, max(longest, math.ceil(turns / entries)))


def distributions(counts: Sequence[RankCounts]) -> tuple[dict[str, Loops], dict[str, float]]:
    """(where a loop is entered -> its iterations, branch -> share of passes that take it) over all ranks."""
    loops: dict[str, Loops] = {}
    for header in sorted({h for rank in counts for h in rank.loops}):
        each = [rank.loops[header] for rank in counts if header in rank.loops]
        mean = sum(one.turns for one in each) / sum(one.entries for one in each)
        loops[f"{header:x}"] = Loops(mean, max(round(max(one.most for one in each)), 1))
    rates: dict[str, float] = {}
    for address in sorted({a for rank in counts for a in rank.branches}):
        times = [rank.branches[address].times for rank in counts if address in rank.branches]
        rates[f"{address:x}"] = sum(taken for _, taken in times) / sum(map(sum, times))
    return loops, rates


def deciding(counts: Sequence[RankCounts]) -> dict[int, list[int]]:
    """Branch on which ranks differ, each always with the same outcome -> the ranks that take it."""
    found = {}
    for address in sorted({a for rank in counts for a in rank.branches}):
        passed = {r: c.branches[address].times for r, c in enumerate(counts) if address in c.branches}
        always = all(min(times) == 0 for times in passed.values())
        taken = [rank for rank, times in passed.items() if times[1]]
        if always and taken and len(taken) < len(passed):
            found[address] = taken
    return found
