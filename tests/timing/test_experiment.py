"""The timer experiment and its verb."""

import json
import time

import pytest

from fembench.cli.main import main
from fembench.timing import clocks, tracer
from fembench.workflows.timers import run_experiment

needs_tsc = pytest.mark.skipif(not clocks.has_tsc(), reason="no processor counter")


@pytest.mark.row("004:9.1.6")
@needs_tsc
def test_every_timer_is_called_and_best_is_at_most_mean_and_median():
    result = run_experiment(50, time.perf_counter)
    names = {(t.timer, t.language) for t in result.timers}
    assert {("rdtsc", "C"), ("rdtscp", "C"), ("gettimeofday", "C"), ("MPI.Wtime", "Python")} <= names
    assert ("MPI_Wtime", "C") not in names  # its address was not given
    for t in result.timers:
        assert t.best <= t.median <= t.worst
        assert t.best <= t.mean <= t.worst


@needs_tsc
def test_a_slow_call_costs_what_it_lasts():
    ticks = tracer.compiled.costs_of_calls(lambda: time.sleep(0.002), 3)
    assert 0.002 <= ticks.min() / clocks.calibrate().ticks_per_second < 0.02


@needs_tsc
def test_a_call_that_raises_ends_the_loop_with_its_error():
    with pytest.raises(ZeroDivisionError):
        tracer.compiled.costs_of_calls(lambda: 1 / 0, 3)


@needs_tsc
def test_mpi_wtime_in_c_needs_its_address_and_unknown_timers_are_refused():
    for wrong in ("MPI_Wtime", "sundial"):
        with pytest.raises(ValueError, match=wrong):
            tracer.compiled.costs_in_c(wrong, 3)


def test_without_a_counter_the_system_clock_times_the_timers(monkeypatch):
    monkeypatch.setattr(clocks, "compiled", None)
    result = run_experiment(20)
    assert (result.reference, result.nanoseconds(7)) == ("perf_counter_ns", 7)
    assert {t.language for t in result.timers} == {"Python"}


def test_the_verb_prints_tables_that_paste_into_markdown(output):
    text = output("timers", "--calls", "5")
    assert text.startswith("5 calls of each timer")
    assert "\nclock of a run: " in text
    bars = [line.count("|") for line in text.splitlines() if line.startswith("|")]
    assert set(bars) == {9}


def test_the_verb_speaks_json(output):
    tree = json.loads(output("timers", "--calls", "5", "--json"))
    assert tree["calls"] == 5
    assert tree["certificate"]["name"] in clocks.CLOCKS
    assert {"timer", "best", "best_ns", "worst", "mean"} <= set(tree["timers"][0])


@pytest.mark.parametrize("calls", ["0", "-3", "2000000"])
def test_a_number_of_calls_that_makes_no_sense_is_one_line_and_exit_2(calls, capsys):
    assert main(["timers", "--calls", calls]) == 2
    assert capsys.readouterr().err == f"fembench: --calls {calls}: expected a number from 1 to 1000000\n"


@needs_tsc
def test_mpi_wtime_is_called_from_c_where_mpi_is_there(comm):
    from fembench.ranks.comm import address

    wtime = address("MPI_Wtime")
    assert wtime > 0
    assert tracer.compiled.costs_in_c("MPI_Wtime", 10, wtime).min() > 0
