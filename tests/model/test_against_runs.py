"""A simulated run against the real one: the residual of the run counts as error."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from planted_records import accounted, nested
from planted_runs import ITERATIONS, even_prices, planted_run

from fembench.model.engine import simulate
from fembench.model.from_record import graph_of_record
from fembench.model.graph import save_graph
from fembench.model.machine import even_machine
from fembench.model.measures import errors_text, run_errors
from fembench.model.planner import make_plan
from fembench.records.case import Case
from fembench.records.phases import ALLREDUCE, ASSEMBLY, CG
from fembench.records.store import load, save
from fembench.records.times import Times
from fembench.workflows.simulate import even_machine_for

REFERENCE = Path(__file__).parents[2] / "results" / "reference" / "runs"


def delayed(seconds):
    """A run whose ranks wait longer than its traced iterations show, by `seconds` per iteration."""
    on = even_machine(2, latency=50e-6, per_byte=8e-9, overhead=0.0)
    record, _ = planted_run(Case.of(mesh="m1", ranks=2), on, even_prices(2))
    late = np.array(record.sets[0].seconds)
    late[late < 1e-12] = 0.0  # waiting that is rounding
    late[:, [CG, ALLREDUCE]] += ITERATIONS * seconds
    one = msgspec.structs.replace(record.sets[0], seconds=nested(late))
    return accounted(msgspec.structs.replace(record, sets=(one,)))


def simulated(record):
    graph = graph_of_record(record)
    return graph, simulate(make_plan(graph, even_machine_for(graph)))


def test_a_delay_that_nothing_explains_is_an_error_and_not_hidden_in_the_graph():
    record = delayed(5e-4)
    plain, after = run_errors(record, *simulated(record))
    middle = Times(record).middle
    whole = middle[:, ASSEMBLY].max() + ITERATIONS * middle[:, CG].max()
    assert plain.makespan == pytest.approx(-100 * ITERATIONS * 5e-4 / whole, abs=1)
    assert plain.process == pytest.approx(-plain.mean)
    assert abs(after.makespan) < 0.5


def test_the_correction_of_one_run_by_the_residual_of_another_is_named_after_the_other():
    one, other = delayed(5e-4), msgspec.structs.replace(delayed(0.0), id="other")
    text = errors_text(other, *simulated(one))
    assert "planted's own residuals" in text
    assert run_errors(other, *simulated(one))[1].makespan > 10


def test_simulate_prints_the_error_without_residuals_first(tmp_path, output):
    record = delayed(5e-4)
    save_graph(graph_of_record(record), tmp_path / "graph.json")
    path = save(record, tmp_path)
    words = ["simulate", str(tmp_path / "graph.json"), "--against", str(path)]
    lines = output(*words).splitlines()
    assert any(line.startswith("residual: ") and "per iteration of planted" in line for line in lines)
    head = next(line for line in lines if "after correction by this run's own residuals" in line)
    row = next(line for line in lines if line.startswith("| makespan"))
    assert [c.strip() for c in head.split("|")][2] == "error"
    plain, after = (float(c.split()[0]) for c in row.split("|")[2:4])
    assert plain < -20
    assert abs(after) < 0.5


@pytest.mark.parametrize(
    ("pattern", "low", "high"),
    [
        ("m-*-p2-*", -3.5, -0.5),
        ("l-*-p2-*", -3.5, -0.5),
        ("box-400000-*-p2-*", -3.5, -0.5),
        ("m3-*-p2-*", -7.5, -2.5),
    ],
)
def test_errors_of_the_reference_runs_are_those_that_the_page_on_prediction_states(pattern, low, high):
    records = [load(path) for path in sorted(REFERENCE.glob(pattern))]
    assert len(records) >= 2
    for record in records:
        assert low <= run_errors(record, *simulated(record))[0].makespan <= high
