"""Clocks: names, rates, quanta, costs."""

import time

import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.timing import clocks
from fembench.timing.clocks import Clock, Pair

needs_tsc = pytest.mark.skipif(not clocks.has_tsc(), reason="no processor counter")


@pytest.mark.parametrize("name", [pytest.param("tsc", marks=needs_tsc), "perf_counter_ns"])
def test_a_clock_shows_ten_milliseconds_of_work_as_ten(name):
    clock = clocks.open_clock(name)
    begin, ticks = time.perf_counter_ns(), clock.read()
    while time.perf_counter_ns() - begin < 10_000_000:
        pass
    shown, passed = clock.read() - ticks, (time.perf_counter_ns() - begin) / 1e9
    assert shown / clock.ticks_per_second == pytest.approx(passed, rel=0.1)


def test_an_unknown_clock_names_the_nearest():
    with pytest.raises(
        InputError, match="unknown clock 'perf_counter'; the nearest known is 'perf_counter_ns'"
    ):
        clocks.open_clock("perf_counter")


def test_a_processor_without_a_counter_has_none_to_open(monkeypatch):
    monkeypatch.setattr(clocks, "has_tsc", lambda: False)
    with pytest.raises(InputError, match="no processor counter"):
        clocks.open_clock("tsc")


def test_a_rate_is_ticks_over_raw_time():
    rate = clocks.rate_between(Pair(1000, 0, 20), Pair(4000, 1_000_000, 40))
    assert rate.ticks_per_second == pytest.approx(3e6)
    assert rate.uncertainty == pytest.approx(30 / 1e6)


def test_no_time_between_two_readings_is_an_error():
    with pytest.raises(ValueError, match="no time"):
        clocks.rate_between(Pair(1, 5, 0), Pair(2, 5, 0))


def test_the_quantum_is_the_smallest_step_that_is_usual():
    steps = np.array([0] * 50 + [1] * 5 + [25] * 5 + [26] * 80 + [52] * 9)
    assert clocks.smallest_usual_step(steps) == 26
    assert clocks.smallest_usual_step(np.array([0, 7])) == 7
    assert clocks.smallest_usual_step(np.arange(5, 100)) == 5  # none is usual: the smallest
    assert clocks.smallest_usual_step(np.zeros(4, dtype=int)) == np.inf


def test_the_quantum_of_a_coarse_clock_is_its_step():
    clock = Clock("coarse", lambda: time.perf_counter_ns() // 100_000, 1e4)
    assert clocks.quantum_ns(clock) in (pytest.approx(100_000), np.inf)  # 100 µs, unless too few readings
    assert clocks.smallest_usual_step(clocks.differences(clock, 20_000)) == 1


@pytest.mark.row("004:F7")
@pytest.mark.alone
@needs_tsc
def test_a_recorded_span_costs_at_most_three_tenths_of_a_microsecond():
    costs = [clocks.span_cost(name) for name in ("tsc", "perf_counter_ns") for _ in range(3)]
    assert min(costs[:3]) <= 300
    assert min(costs[3:]) <= 300
    assert min(costs) > 1


def test_measuring_the_cost_leaves_the_tracer_empty():
    tracer = clocks.make_tracer("perf_counter_ns", 10)
    clocks.span_ns(tracer)
    assert (tracer.counts().sum(), tracer.stored, tracer.recording) == (0, 0, False)
