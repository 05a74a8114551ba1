"""An execution graph reduced, and measured relative to one rank."""

import msgspec
import pytest
from known_programs import cg_chain, graph_of, ping_pong

from fembench.base.errors import InputError
from fembench.model.engine import simulate
from fembench.model.graph import Collective, Compute, Loop, Receive, Send, count, flat
from fembench.model.machine import even_machine
from fembench.model.planner import make_plan
from fembench_studies.graphs.reduce import reduced
from fembench_studies.graphs.speedup import against_one_rank, operations, parallel

NET = {"latency": 50e-6, "per_byte": 8e-9, "overhead": 1e-6}


def unrolled(graph):
    return msgspec.structs.replace(graph, programs=tuple(tuple(flat(p)) for p in graph.programs))


def makespan(graph):
    return simulate(make_plan(graph, even_machine(graph.ranks, **NET)), period=False).makespan


def test_a_reduced_graph_is_smaller_and_takes_the_same_time():
    body = [Compute(0, 1e-3), Compute(0, 2e-3), Send(1, 8, 1, blocking=True), Receive(1, 8, 1, blocking=True)]
    other = [Receive(0, 8, 1, blocking=True), Compute(0, 1e-3), Send(0, 8, 1, blocking=True)]
    graph = graph_of([body * 6, other * 6])
    sizes = [sum(map(count, reduced(graph, level).programs)) for level in (0, 1, 2, 3)]
    assert sizes == [42, 36, 8, 8]
    for level in (1, 2, 3):
        assert makespan(reduced(graph, level)) == pytest.approx(makespan(graph), rel=1e-12)


def test_folding_finds_the_loops_that_were_unrolled():
    graph = cg_chain([0.01] * 3, 50, 2400)
    assert reduced(unrolled(graph), 2).programs == graph.programs or all(
        len(p) == 1 and p[0].turns == 50 for p in reduced(unrolled(graph), 2).programs
    )
    assert makespan(reduced(unrolled(graph), 2)) == pytest.approx(makespan(graph), rel=1e-12)


def test_iterations_that_differ_in_time_alone_fold_into_their_mean():
    program = [e for t in (1e-3, 2e-3, 3e-3) for e in (Compute(0, t), Collective("allreduce", 8, 2))]
    graph = graph_of([program, program])
    assert sum(map(count, reduced(graph, 2).programs)) == 12
    folded = reduced(graph, 3).programs[0]
    assert folded == (Loop(3, (Compute(0, 2e-3), Collective("allreduce", 8, 2))),)
    assert makespan(reduced(graph, 3)) == pytest.approx(makespan(graph), rel=1e-12)


def test_a_level_that_is_none_is_refused():
    with pytest.raises(InputError, match="expected 0 to 3"):
        reduced(ping_pong(1, 8), 4)


@pytest.mark.row("003:2.3-2.6", "003:A10")
def test_speedup_and_its_kin_follow_from_times_and_operations():
    found = parallel(T1=8.0, O1=8.0, Tn=2.5, On=9.0, n=4)
    assert found.speedup == 3.2
    assert found.efficiency == 0.8
    assert found.redundancy == 1.125
    assert found.utilisation == pytest.approx(9 / (4 * 2.5))
    assert found.quality == pytest.approx(8**3 / (4 * 2.5**2 * 9))


def test_the_work_of_unequal_ranks_is_counted_at_speed_1_and_a_base_has_one_rank():
    graph = cg_chain([0.01] * 4, 50, 2400)
    on = even_machine(4, speeds=(1, 1, 0.5, 1), **NET)
    result = simulate(make_plan(graph, on))
    assert operations(result, on.speeds) == pytest.approx(4 * 50 * 0.01 + result.overhead.sum())
    with pytest.raises(InputError, match="a graph of 4 ranks; expected one rank"):
        against_one_rank(graph, on, result)
