"""Acceptance A3 and A9 of thesis-000, the machine model's file, what-if machines."""

from dataclasses import replace

import pytest
from thesis_000 import factors, machine_text, pi_model, printed_tasks, rows, toy

from fembench.base.errors import InputError
from fembench.model.closed_form import TimeRange
from fembench_studies.pamela.bounds import Setting
from fembench_studies.pamela.history import (
    History,
    SampleSeries,
    add,
    machine_model,
    model_text,
    summary,
    with_samples,
)
from fembench_studies.pamela.machine_model import fastest, homogeneous, parse
from fembench_studies.pamela.operations_job import OperationsFound
from fembench_studies.programs.tasks import deal_tasks


@pytest.mark.row("000:F5a")
def test_tasks_of_the_thesis():
    assert printed_tasks((1, 0.4, 0.2), 128) == deal_tasks((1, 0.4, 0.2), 128) == (80, 32, 16)


@pytest.mark.parametrize("p", [2, 4, 8, 16, 32])
def test_ours_deals_each_task_once_and_close_to_ideal(p):
    w = factors(p)
    dealt = deal_tasks(w, 100)
    assert sum(dealt) == 100
    assert max(abs(s - 100 * x / sum(w)) for s, x in zip(dealt, w)) < 1


@pytest.mark.parametrize("row", rows("pi_task_cost"), ids=lambda r: r["machine"])
def test_cost_of_a_pi_task_from_the_printed_machine_model(row):
    model = parse(machine_text())
    model = replace(
        model, aliases={"compare": "loop_iteration"}, free=frozenset({"assign_obj", "assign_long"})
    )
    found = Setting(pi_model(), model, 1).task(1, int(row["machine"]))
    assert found.low == pytest.approx(float(row["cost_min_s"]), abs=1e-3)
    assert found.high == pytest.approx(float(row["cost_max_s"]), abs=1e-3)


def test_an_operation_without_measurements_is_an_error():
    with pytest.raises(InputError, match="'assign_obj' of machine 1"):
        Setting(pi_model(), parse(machine_text()), 1).task(1, 1)


def test_comments_messages_and_factors_are_read():
    text = "//desempenho do computador trabalhador (indice 1): itu\n" + machine_text()
    model = parse(text + "\ninter_send[1][0](64)=[8E-3;17E-3]\nfactor[1]=0.5")
    assert model.message(0, 1, 9999) == model.message(1, 0, 64) == TimeRange(8e-3, 17e-3)
    assert model.factors == {1: 0.5}


def test_messages_grow_between_measured_sizes():
    model = replace(toy(), sends={(0, 1): {100: TimeRange(1, 2), 300: TimeRange(3, 6)}})
    assert model.message(1, 0, 200) == TimeRange(2, 4)
    assert model.message(1, 0, 500) == TimeRange(5, 10)
    assert model.message(1, 0, 1) == TimeRange(1, 2)


def test_an_unreadable_line_is_named():
    with pytest.raises(InputError, match=r"line 2: cannot read 'inter_sum_int\[1\]=3'"):
        parse("inter_a[1]=[1;2]\ninter_sum_int[1]=3")


@pytest.mark.row("000:F6", "000:F29")
def test_what_if_machines():
    model = replace(toy(), factors={1: 1.0, 2: 0.5})
    assert fastest(model, 1).workers == (1,)
    slow = homogeneous(model, 2, 3)
    assert [slow.cost("b", p) for p in slow.workers] == [TimeRange(3, 4)] * 3
    assert slow.message(3, 0, 1) == TimeRange(0.1, 0.2)
    with pytest.raises(InputError, match="has 2 workers"):
        fastest(model, 3)


def test_a_history_forgets_the_oldest_and_makes_intervals():
    eight = SampleSeries(machine=1, operation="b", samples=tuple(map(float, range(1, 9))))
    history = add(History(kept=4), eight)
    history = add(history, SampleSeries(machine=1, target=0, n_bytes=64, samples=(2.0,)))
    assert history.series[0].samples == (5, 6, 7, 8)
    model = machine_model(history)
    assert model.cost("b", 1) == TimeRange(5, 8)
    assert model.message(0, 1, 1) == TimeRange(2, 2)


def test_a_sample_of_no_time_is_refused():
    with pytest.raises(InputError, match="above 0"):
        add(History(), SampleSeries(machine=1, operation="b", samples=(0.0,)))


def benchmarked(seconds, machines=("a", "b", "c"), synthetic=""):
    """Samples of a coordinator and two workers, the last at half speed."""
    return OperationsFound(
        machines=machines,
        operations={"sum_int": tuple((s * seconds,) for s in (3.0, 1.0, 2.0))},
        messages={64: ((), (seconds,), (5 * seconds,))},
        discarded=0,
        synthetic=synthetic,
    )


@pytest.mark.row("000:F13b")
def test_runs_of_the_benchmarks_add_up_to_a_machine_file():
    history = History(kept=2)
    for seconds in (9.0, 1.0, 1.25):
        history = with_samples(history, benchmarked(seconds))
    text = model_text(history)
    model = parse(text)
    assert "// machine 2: c\nfactor[2]=0.5\n" in text
    assert model.cost("sum_int", 2) == TimeRange(2, 2.5)  # the first sample was dropped
    assert model.message(0, 2, 64) == TimeRange(5, 6.25)
    assert model.factors == {1: 1.0, 2: 0.5}
    assert "| sum_int             |  1 s | 3.75 s |       2 |" in summary(history)


def test_samples_of_other_machines_are_not_mixed():
    history = with_samples(History(), benchmarked(1.0))
    for other in ({"machines": ("a", "b", "d")}, {"synthetic": "lab"}):
        with pytest.raises(InputError, match=r"expected the machines of the history: a, b, c$"):
            with_samples(history, benchmarked(1.0, **other))


def test_emulated_machines_are_labelled():
    assert model_text(with_samples(History(), benchmarked(1.0, synthetic="lab"))).startswith(
        "// SYNTHETIC: lab"
    )


def test_hosts_that_were_never_idle_change_nothing():
    nothing = OperationsFound(
        machines=("a", "b"), operations={"sum_int": ((), ())}, messages={}, discarded=3, synthetic=""
    )
    assert with_samples(History(), nothing) == History()
