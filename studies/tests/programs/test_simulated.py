"""Small programs as execution graphs: arithmetic, the closed form, the tables of validate."""

import json

import msgspec
import pytest
from planted_calibration import planted_calibration

from fembench.base.errors import InputError
from fembench.cli.main import main
from fembench_studies.programs.cases import both, case_of, predicted
from fembench_studies.programs.record import AppCase, save_app
from fembench_studies.programs.scored import app_cells, app_scores
from fembench_studies.programs.settings import ProgramSettings
from fembench_studies.programs.simulated import simulated

MESSAGE = {"8": ((), (1e-3,), (1e-3,)), "1000008": ((), (11e-3,), (11e-3,))}  # a millisecond, 10 ns a byte
POINTS = {"pi_point": ((1e-8,), (1e-8,), (2e-8,))}
UNITS = {"unit": ((0.1,), (0.1,), (0.2,))}


def calibration(samples, messages=MESSAGE):
    return planted_calibration(AppCase(program="pi", ranks=3), samples, messages)


def options(program, **more):
    usual = {"program": program, "ranks": 3, "tasks": 0, "size": 0, "n_bytes": 65536, "static": 1.0}
    usual |= {"repetitions": 2, "samples": 5, "emulate": "", "dilate": 1.0, "seed": 0, "schedule": "turn"}
    return ProgramSettings(**usual | {"compose": "phase", "policy": "q", "cores": 0} | more)


def test_a_farm_ends_with_its_last_worker():
    asked = options("pi", tasks=3, size=3_000_000)
    case = case_of(asked, calibration(POINTS))
    found = simulated(case, calibration(POINTS))
    # the slow worker: its input, a task of a million points at 2e-8 s, its result; the other two of half that
    assert case.dealt == (2, 1)
    assert found.terms["makespan"][0] == pytest.approx(0.02 + 2e-3, rel=0.03)
    assert found.low <= found.terms["makespan"][0] <= found.high
    assert found.method == "simulation"


def test_large_inputs_leave_the_coordinator_one_after_the_other():
    costs = {"matrix_300": ((1e-3,),) * 3}
    case = case_of(options("matrices", tasks=8, size=300), calibration(costs))
    found = simulated(case, calibration(costs)).terms["makespan"][0]
    one = 300 * 300 * 8 * 1e-8  # seconds of the network for an input or a result
    assert 8 * one < found < 8 * one + 4 * (one + 1e-3) + 5e-3


def test_messages_keep_workers():
    """In both predictions, with every task; a message travels for half a millisecond in any case."""
    plain = calibration(POINTS, {"8": ((), (5e-4,), (5e-4,))})
    kept = msgspec.structs.replace(
        plain, taking={"8": ((), (2e-3,), (2e-3,))}, answering={"8": ((), (3e-3,), (3e-3,))}
    )
    asked = options("pi", tasks=30, size=30_000_000)
    case = case_of(asked, plain)
    before, after = (both(case, record, asked) for record in (plain, kept))
    assert case.dealt == (20, 10)
    assert after[1].terms["makespan"][0] - before[1].terms["makespan"][0] == pytest.approx(
        20 * 5e-3, rel=0.02
    )
    assert after[0].low - before[0].low == pytest.approx(20 * 4.5e-3, rel=0.02)


def test_unequal_samples_make_an_interval():
    record = calibration({"pi_point": ((1e-8,), tuple(1e-9 * k for k in range(5, 16)), (1e-8,))})
    found = simulated(case_of(options("pi", tasks=4, size=40_000_000), record), record)
    assert found.low == found.terms["makespan"][0]  # the other worker takes equally long
    assert found.high > 1.2 * found.terms["makespan"][0]


@pytest.mark.parametrize("program", ["ring", "fork", "join", "diamond", "fork-join"])
def test_task_graphs_agree_with_the_closed_form(program):
    record = calibration(UNITS)
    closed, graph = both(case_of(options(program, size=10), record), record, options(program))
    assert graph.terms["makespan"][0] == pytest.approx(closed.low, rel=0.01)


def test_the_task_that_closes_a_ring_does_not_compute():
    record = calibration(UNITS)
    assert case_of(options("ring", size=10), record).idle == (3,)
    assert case_of(options("fork", size=10), record).idle == ()


def test_conditionals_at_their_worst_and_shared_cores_take_longer():
    record = calibration({"power_10": ((1.0,),) * 3, "element": ((0.01,),) * 3})
    case = case_of(options("partial", tasks=2, size=10), record)
    assert simulated(case, record).low == pytest.approx(1 + 0.25, rel=0.01)
    assert simulated(case, record, with_q=False).low == pytest.approx(1 + 1, rel=0.01)
    assert simulated(case, record, cores=1).low == pytest.approx(2.5, rel=0.01)


def test_tasks_dealt_while_it_runs_are_predicted_in_closed_form_only():
    record = calibration(POINTS)
    asked = options("pi", tasks=30, size=30_000_000, static=0.5)
    case = case_of(asked, record)
    closed, graph = both(case, record, asked)
    assert graph is None
    whole = predicted(case_of(options("pi", tasks=30, size=30_000_000), record), record, asked)
    assert (closed.low, closed.high) == (whole.low, whole.high)
    with pytest.raises(InputError, match="deal all tasks before"):
        simulated(case, record)


def ran(program, seconds, **more):
    record = calibration(UNITS if program == "fork" else POINTS)
    asked = options(program, **more)
    case = case_of(asked, record)
    closed, graph = both(case, record, asked)
    times = tuple(seconds * graph.terms["makespan"][0] * f for f in (0.99, 1.0, 1.01))
    return msgspec.structs.replace(
        record, id=program, case=case, samples={}, predicted=closed, simulated=graph, seconds=times
    )


def test_validate_scores_programs_by_method(tmp_path, capsys, output):
    runs = [ran("pi", 1.02, tasks=9, size=9_000_000), ran("fork", 1.04, size=10), ran("fork", 1.03, size=20)]
    cells = app_cells(runs)
    assert [c.method for c in cells] == ["analytic", "simulation"] * 3
    scores = app_scores(cells)
    assert scores["task graphs, simulation"].median == pytest.approx(1 - (1 / 1.04 + 1 / 1.03) / 2, rel=1e-3)
    assert scores["farms, simulation"].bias == pytest.approx(1 / 1.02 - 1, rel=1e-3)
    for k, run in enumerate([*runs, calibration(POINTS)]):
        save_app(run, tmp_path / "runs" / f"{k}.json")
    text = output("validate", str(tmp_path))
    assert "farms, analytic" in text
    assert "| fork 20" in text
    assert main(["validate", str(tmp_path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["cells"]) == 6


def test_a_wrong_result_is_not_scored_and_an_empty_folder_is_named(tmp_path, refusal):
    assert app_cells([msgspec.structs.replace(ran("fork", 1.0, size=10), error=2.0)]) == []
    assert "no program with a prediction" in refusal("validate", str(tmp_path))


def test_outside_is_the_distance_from_the_interval_over_its_middle():
    (cell, _) = app_cells([ran("fork", 1.0, size=10)])
    assert cell._replace(low=9.0, high=11.0, measured=12.0).outside == pytest.approx(0.1)
    assert cell._replace(low=9.0, high=11.0, measured=9.5).outside == 0


@pytest.mark.parametrize("program", ["ring", "fork", "join", "diamond"])
def test_given_costs_of_messages_are_those_of_hlogp(program):
    record = calibration(UNITS)
    case = case_of(options(program, size=10), record)
    case = msgspec.structs.replace(case, costs=((0.2, -0.15, 0.1),) * len(case.edges))
    closed, graph = both(case, record, options(program))
    sends = 0.05 if program == "ring" else 0.0  # of the second to last rank: no task waits for it
    assert graph.terms["makespan"][0] - sends == pytest.approx(closed.low, rel=1e-6)
    assert closed.low > both(case_of(options(program, size=10), record), record, options(program))[0].low
    if program == "ring":  # it travels while the sender is occupied, and arrives at begin + Os + L
        assert closed.low == pytest.approx(1 + 1 + 2 + 3 * (0.2 - 0.15 + 0.1))


def test_a_message_is_never_there_before_it_can_be():
    record = calibration(UNITS)
    case = case_of(options("ring", size=10), record)
    case = msgspec.structs.replace(case, costs=((0.0, 0.0, 0.0),) * len(case.edges))
    plain = case_of(options("ring", size=10), record)
    assert predicted(case, record, options("ring")).low == predicted(plain, record, options("ring")).low
