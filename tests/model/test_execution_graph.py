"""The execution graph: its file, its pictures, and what is measured on it."""

import json

import pytest
from known_programs import cg_chain, graph_of

from fembench.base.errors import InputError
from fembench.model.engine import simulate
from fembench.model.graph import (
    Collective,
    Compute,
    Loop,
    Receive,
    Send,
    Wait,
    count,
    length,
    load_graph,
    save_graph,
)
from fembench.model.machine import even_machine
from fembench.model.measures import (
    bottlenecks,
    makespan_error,
    mean_error,
    phase_table,
    process_error,
    rank_table,
)
from fembench.model.path import timeline, write_timeline
from fembench.model.planner import make_plan

NET = {"latency": 50e-6, "per_byte": 8e-9, "overhead": 1e-6}


def test_a_graph_survives_its_file(tmp_path):
    graph = cg_chain([0.01, 0.02], 5, 2400)
    save_graph(graph, tmp_path / "graph.json")
    assert load_graph(tmp_path / "graph.json") == graph


@pytest.mark.parametrize(
    ("programs", "message"),
    [
        ([[Send(2, 8, 1)], []], "ranks below 2"),
        ([[Receive(-1, 8, 1)], []], "ranks below 2"),
        ([[Compute(7, 1.0)], []], "a phase below 3"),
        ([[Compute(0, -1.0)], []], "seconds of 0 or more"),
        ([], r"programs = \[\]: expected that of at least one rank"),
        ([[Loop(-1, ())], []], "0 or more turns"),
        ([[Loop(2, (Collective("allreduce", -8, 2),))], []], "sizes of 0 or more"),
    ],
)
def test_a_graph_that_cannot_be_is_refused(tmp_path, programs, message):
    save_graph(graph_of(programs), tmp_path / "graph.json")
    with pytest.raises(InputError, match=message):
        load_graph(tmp_path / "graph.json")


def test_lengths_count_loops_once_and_unrolled():
    program = (Loop(3, (Wait(1), Loop(2, (Wait(1),)))),)
    assert count(program) == 4
    assert length(program) == 9


REAL = (3.11, 2.95, 2.45, 2.09, 1.76, 1.33, 0.93, 0.64)
SIMULATED = (4.24, 1.79, 1.42, 2.97, 0.05, 1.42, 2.56, 1.65)


def test_published_errors_look_small_because_those_of_processes_cancel():
    assert mean_error([1.90], [2.01]) == pytest.approx(5.8, abs=0.05)  # printed means of Table 4.1
    assert mean_error(REAL, SIMULATED) == pytest.approx(5.5, abs=0.05)
    assert makespan_error(REAL, SIMULATED) == pytest.approx(36.3, abs=0.05)
    assert process_error(REAL, SIMULATED) == pytest.approx(74.6, abs=0.05)
    assert mean_error([0.11137], [0.10287]) == pytest.approx(-7.6, abs=0.05)  # the other sign, printed means


@pytest.mark.row("003:F15a")
def test_what_ranks_did_is_told_in_tables_and_lines():
    graph = cg_chain([0.01] * 4, 50, 2400)
    on = even_machine(4, speeds=(1, 1, 0.5, 1), **NET)
    plan = make_plan(graph, on)
    result = simulate(plan)
    assert rank_table(plan, result).count("\n") == 5
    assert "allreduce" in phase_table(plan, result)
    lines = bottlenecks(plan, result, ("a", "b", "c", "d"))
    assert lines[0].startswith("compute: 9")
    assert any(line.startswith("rank 2 on c computes") for line in lines)
    assert lines[-1].endswith("1.60 times the mean")


@pytest.mark.row("003:exp")
def test_chromes_trace_holds_every_bar_in_microseconds(tmp_path):
    on = even_machine(3, latency=50e-6, per_byte=8e-9, overhead=1e-6)
    plan = make_plan(cg_chain([0.01] * 3, 4, 2400), on)
    result = simulate(plan, period=False)
    bars = list(timeline(result))
    write_timeline(bars, plan.phases, on, tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    shown = [e for e in events if e["ph"] == "X"]
    assert len(shown) == len(bars)
    assert max(e["ts"] + e["dur"] for e in shown) == pytest.approx(1e6 * result.makespan)
    assert {e["name"] for e in shown} == {"compute", "message", "allreduce"}
