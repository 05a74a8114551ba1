"""Reductions of blocks: every path from entry to return keeps its time."""

import pytest
from thesis_001 import DATA

from fembench_studies.binaries.block_reduce import (
    hoist_common,
    merge_groupings,
    reduce_blocks,
)
from fembench_studies.binaries.blocks import Function, Vertex, functions_of, successors

LISTING = (DATA / "seed003_integral_i386.objdump").read_text()


def made(*vertices):
    """A function of (start, end, kind, cost, target) blocks."""
    found = [Vertex(*v) for v in vertices]
    return Function("f", found[0].start, found[-1].end, {v.start: v for v in found})


# a decision (10); one way is a block and a jump, the other falls through; both meet in a block (40), to whose
# successor (50) an earlier decision (2) leads as well
DIAMOND = (
    (0, 2, "execute", 1.0),
    (2, 4, "branch", 1.0, 50),
    (4, 10, "execute", 1.0),
    (10, 12, "branch", 1.0, 30),  # the second branch begins at 30
    (12, 20, "execute", 5.0),
    (20, 22, "jump", 1.0, 40),
    (30, 40, "execute", 3.0),
    (40, 50, "execute", 7.0),
    (50, 52, "branch", 1.0, 60),
    (52, 60, "execute", 2.0),
    (60, 70, "execute", 4.0),
    (70, 71, "return", 1.0),
)


def ways(function, address=None, spent=0.0, sent=()):
    """(seconds, messages passed) of every path to a return that takes each loop at most once."""
    v = function.vertices[function.start if address is None else address]
    spent, sent = spent + v.cost, sent + ((v.name,) if v.kind == "message" else ())
    if v.kind == "return":
        return [(round(spent, 9), sent)]
    following = [a for a in successors(function, v) if a > v.start]
    return sorted(way for a in following for way in ways(function, a, spent, sent))


@pytest.mark.row("003:F7")
@pytest.mark.parametrize("level", [1, 2, 3])
def test_every_way_takes_as_long_as_before_and_blocks_become_fewer(level):
    function = made(*DIAMOND)
    before = ways(function)
    reduce_blocks(function, level)
    assert ways(function) == before
    assert len(function.vertices) < len(DIAMOND)


def test_a_block_where_paths_meet_passes_its_cost_to_its_predecessors():
    function = made(*DIAMOND)
    merge_groupings(function)
    assert 40 not in function.vertices
    assert function.vertices[20].target == 50  # the jump
    assert function.vertices[20].cost == 8.0
    assert function.vertices[30].end == 50  # the block that fell through
    assert function.vertices[30].cost == 10.0
    assert 60 in function.vertices  # its predecessor, a decision, has another successor


def test_what_both_ways_cost_at_least_the_decision_costs():
    function = made(*DIAMOND)
    hoist_common(function)
    decision = function.vertices[10]
    assert decision.cost == 4.0
    assert function.vertices[12].cost == 2.0
    assert 30 not in function.vertices  # the cheaper branch
    assert decision.target == 40
    assert function.vertices[50].cost == 1.0  # one of its branches has another predecessor


@pytest.mark.parametrize("kind", ["message", "call"])
def test_messages_and_calls_are_not_hoisted(kind):
    blocks = [list(v) for v in DIAMOND]
    blocks[6] = [30, 40, kind, 3.0, None, "MPI_Send"]
    function = made(*blocks)
    hoist_common(function)
    assert function.vertices[10].cost == 1.0


def test_the_test_of_a_loop_stays_because_iterations_are_counted_there():
    loop = (
        (0, 10, "execute", 1.0),
        (10, 12, "jump", 1.0, 30),
        (12, 30, "execute", 9.0),  # the body
        (30, 40, "execute", 2.0),  # the test: the jump and the body lead there
        (40, 42, "branch", 1.0, 12),
        (42, 43, "return", 1.0),
    )
    function = made(*loop)
    merge_groupings(function)
    hoist_common(function)
    assert list(function.vertices) == [v[0] for v in loop]


@pytest.mark.row("003:A6-A8")
@pytest.mark.parametrize("level", [1, 2, 3])
def test_the_thesis_program_takes_the_same_time_on_every_way(level):
    functions = functions_of(LISTING, lambda i: 1.0)
    before = {name: ways(function) for name, function in functions.items()}
    counts = [sum(len(f.vertices) for f in functions.values())]
    for function in functions.values():
        reduce_blocks(function, level)
    assert {name: ways(function) for name, function in functions.items()} == before
    counts.append(sum(len(f.vertices) for f in functions.values()))
    assert counts[0] > counts[1]
