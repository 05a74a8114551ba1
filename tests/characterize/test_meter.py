"""What one visit finds: the time that counts is the processor's, the elapsed, or the stretched one."""

import dataclasses
import time

import pytest

from fembench.characterize import meter
from fembench.characterize.meter import Meter, batch_of, way_of
from fembench.characterize.probes import Probe
from fembench.records.phases import AXPY
from fembench.synthetic.slowness import slowness_of
from fembench.timing.tracer import make_tracer

pytestmark = pytest.mark.alone
USED, SLEPT = 0.002, 0.006


def busy(seconds):
    """Use so much processor time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def probe_of(call, units=1000):
    return Probe("updates", "", "L2", "dofs", units, 10, 1, AXPY, call)


def slow(speed, dilate=1.0):
    """The slowness of a rank of this speed, in a job with slower ones."""
    return slowness_of(0, (speed, 0.1), dilate)


def measured(way, call, *, speed=1.0, dilate=1.0, seconds=0.05):
    one = Meter(make_tracer(), slow(speed, dilate), way, batch=USED)
    return one.visit(probe_of(call), USED, seconds), one


def interrupted():
    busy(USED)
    time.sleep(SLEPT)  # as if somebody else had the processor


@pytest.mark.parametrize(
    ("way", "call", "speed", "dilate", "factor"),
    [
        ("processor", interrupted, 1.0, 1.0, 1),
        ("stretched", lambda: busy(USED), 0.25, 2.0, 8),
        ("stretched", interrupted, 0.5, 1.0, 2),  # ready after USED + SLEPT, due after 2 USED
        ("stretched", interrupted, 1.0, 1.0, 1),  # a rank at full speed among slower ones
    ],
)
def test_the_rate_is_that_of_the_processor_time_stretched_by_the_injected_speed(
    way, call, speed, dilate, factor
):
    rate, one = measured(way, call, speed=speed, dilate=dilate)
    assert one.factor == factor
    assert rate == pytest.approx(1000 / USED / factor, rel=0.1 if call is interrupted else 0.03)
    if call is interrupted and factor != 1:
        assert one.held_back > 0.2
    if way == "processor":
        assert one.held_back == pytest.approx(SLEPT / (USED + SLEPT), abs=0.2)


def test_who_has_a_part_of_it_is_as_fast_as_he_gets_on():
    rate, _ = measured("elapsed", interrupted)
    assert rate < 1.05 * 1000 / (USED + SLEPT)


def test_one_slow_batch_of_many_does_not_count():
    calls = []

    def call():
        calls.append(1)
        busy(USED * (20 if len(calls) == 3 else 1))

    rate, _ = measured("processor", call, seconds=0.08)
    assert rate == pytest.approx(1000 / USED, rel=0.1)


@pytest.mark.parametrize(("way", "before"), [("processor", 1), ("elapsed", 1), ("stretched", 0)])
def test_what_comes_before_a_call_is_not_timed(way, before):
    calls = []

    def product():
        calls.append("before")
        busy(2 * USED)

    def updates():
        calls.append("call")
        busy(USED)

    one = Meter(make_tracer(), slow(1.0), way, batch=2 * USED)
    probe = dataclasses.replace(probe_of(updates), before=product)
    assert one.visit(probe, USED, 0.05) == pytest.approx(1000 / USED, rel=0.2)
    assert calls.count("before") == before * calls.count("call")
    assert calls[:2] == (["before", "call"] if before else ["call", "call"])


def test_the_tracer_shows_the_injected_speed():
    tracer = make_tracer()
    one = Meter(tracer, slow(0.25), "stretched", batch=USED)
    one.visit(probe_of(lambda: busy(USED)), USED, 0.0)
    assert tracer.counts()[AXPY] == meter.LEARNT + 1
    assert tracer.seconds()[AXPY] >= (meter.LEARNT + 4) * USED


def test_a_stretched_visit_is_one_batch_of_phases_after_some_that_teach():
    calls, tracer = [], make_tracer()
    one = Meter(tracer, slow(0.5), "stretched", batch=10 * USED)
    one.visit(probe_of(lambda: calls.append(1)), USED, 1.0)
    assert len(calls) == tracer.counts()[AXPY] == 10 * (meter.LEARNT + 1)


def test_batches_are_short_where_the_slowest_rank_sleeps_long_and_crowds_are_measured_by_what_passes():
    longest = [batch_of("stretched", factor) for factor in (4.0, 50.0, 1e6)]
    assert longest == [meter.LONGEST, meter.STRETCHED / 50, meter.SHORTEST]
    assert batch_of("processor", 4.0) == meter.BATCH
    assert way_of(False, 2, 2, None) == "processor"
    assert way_of(False, 3, 2, None) == way_of(False, 1, 2, 0.25) == "elapsed"  # a crowd, a quota
    assert way_of(True, 4, 2, 0.25) == "stretched"


def test_where_processor_time_is_counted_in_ticks_a_call_costs_what_passes(monkeypatch):
    monkeypatch.setattr(time, "thread_time_ns", lambda: time.perf_counter_ns() // 10**7 * 10**7)
    assert way_of(False, 2, 2, None) == "elapsed"
    one = Meter(make_tracer(), slow(1.0), "elapsed", batch=USED)
    cost = one.cost(probe_of(interrupted))
    assert cost > 0.9 * (USED + SLEPT)
    assert one.calls(cost) == 1


def test_the_cost_of_a_call_is_its_processor_time():
    one = Meter(make_tracer(), slow(0.5), "stretched", batch=USED)
    cost = one.cost(probe_of(interrupted))
    assert cost == pytest.approx(USED, rel=0.2)
    assert one.calls(cost / 4) == 4
    assert one.shortest_visit(USED) == pytest.approx(2 * USED)
