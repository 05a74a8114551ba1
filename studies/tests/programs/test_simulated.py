"""Small programs predicted from a planted calibration: farms as execution graphs, task graphs by HLogP."""

import msgspec
import pytest
from planted_calibration import planted_calibration

from fembench.base.errors import InputError
from fembench.model.events import simulate_events
from fembench_studies.programs.cases import case_of, predicted
from fembench_studies.programs.record import AppCase
from fembench_studies.programs.settings import ProgramSettings
from fembench_studies.programs.simulated import machine_from, plan_of

MESSAGE = {"8": ((), (1e-3,), (1e-3,)), "1000008": ((), (11e-3,), (11e-3,))}  # a millisecond, 10 ns a byte
POINTS = {"pi_point": ((1e-8,), (1e-8,), (2e-8,))}
UNITS = {"unit": ((0.1,), (0.1,), (0.2,))}


def calibration(samples, messages=MESSAGE):
    return planted_calibration(AppCase(program="pi", ranks=3), samples, messages)


def options(program, **more):
    return ProgramSettings(program, **{"ranks": 3, "repetitions": 2, "samples": 5} | more)


def simulated(case, record):
    costs = {name: [row[0] for row in rows] for name, rows in record.samples.items()}
    return simulate_events(plan_of(case, costs, machine_from(record, case))).makespan


def test_a_farm_ends_with_its_last_worker():
    case = case_of(options("pi", tasks=3, size=3_000_000), calibration(POINTS))
    # the slow worker: its input, a task of a million points at 2e-8 s, its result; the other two of half that
    assert case.dealt == (2, 1)
    assert simulated(case, calibration(POINTS)) == pytest.approx(0.02 + 2e-3, rel=0.03)


def test_large_inputs_leave_the_coordinator_one_after_the_other():
    costs = {"matrix_300": ((1e-3,),) * 3}
    case = case_of(options("matrices", tasks=8, size=300), calibration(costs))
    one = 300 * 300 * 8 * 1e-8  # seconds of the network for an input or a result
    assert 8 * one < simulated(case, calibration(costs)) < 8 * one + 4 * (one + 1e-3) + 5e-3


def test_messages_keep_workers():
    """In both predictions, with every task; a message travels for half a millisecond in any case."""
    plain = calibration(POINTS, {"8": ((), (5e-4,), (5e-4,))})
    kept = msgspec.structs.replace(
        plain, taking={"8": ((), (2e-3,), (2e-3,))}, answering={"8": ((), (3e-3,), (3e-3,))}
    )
    asked = options("pi", tasks=30, size=30_000_000)
    case = case_of(asked, plain)
    assert case.dealt == (20, 10)
    assert simulated(case, kept) - simulated(case, plain) == pytest.approx(20 * 5e-3, rel=0.02)
    closed = [predicted(case, record).low for record in (plain, kept)]
    assert closed[1] - closed[0] == pytest.approx(20 * 4.5e-3, rel=0.02)


def test_tasks_dealt_while_it_runs_are_predicted_in_closed_form_only():
    record = calibration(POINTS)
    asked = options("pi", tasks=30, size=30_000_000, static=0.5)
    case = case_of(asked, record)
    closed = predicted(case, record)
    whole = predicted(case_of(options("pi", tasks=30, size=30_000_000), record), record)
    assert (closed.low, closed.high) == (whole.low, whole.high)
    with pytest.raises(InputError, match="deal all tasks before"):
        simulated(case, record)


def test_the_task_that_closes_a_ring_does_not_compute():
    record = calibration(UNITS)
    assert case_of(options("ring", size=10), record).idle == (3,)
    assert case_of(options("fork", size=10), record).idle == ()


@pytest.mark.parametrize("program", ["ring", "fork", "join", "diamond"])
def test_given_costs_of_messages_are_those_of_hlogp(program):
    record, asked = calibration(UNITS), options(program, size=10)
    plain = case_of(asked, record)
    dear, free = (
        msgspec.structs.replace(plain, costs=(cost,) * len(plain.edges))
        for cost in ((0.2, -0.15, 0.1), (0.0, 0.0, 0.0))
    )
    low = [predicted(case, record).low for case in (dear, plain, free)]
    assert low[0] > low[1] == low[2]  # a message is never there before it can be
    if program == "ring":  # it travels while the sender is occupied, and arrives at begin + Os + L
        assert low[0] == pytest.approx(1 + 1 + 2 + 3 * (0.2 - 0.15 + 0.1))
