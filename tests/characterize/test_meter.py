"""What one visit finds: the time that counts is the processor's, the elapsed, or the stretched one."""

import dataclasses
import time
from types import SimpleNamespace

import pytest

from fembench.characterize import meter
from fembench.characterize.meter import Meter, way_of
from fembench.characterize.probes import Probe
from fembench.records.phases import AXPY, SEND
from fembench.timing.tracer import make_tracer

pytestmark = pytest.mark.alone
USED, SLEPT = 0.002, 0.006


def busy(seconds):
    """Use so much processor time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def probe_of(call, units=1000):
    return Probe("updates", "L2", "dofs", units, 1, AXPY, call)


def measured(way, call, *, factor=1.0, seconds=0.05):
    one = Meter(make_tracer(), way, factor, batch=USED)
    return one.visit(probe_of(call), USED, seconds), one


def interrupted():
    busy(USED)
    time.sleep(SLEPT)  # as if somebody else had the processor


@pytest.mark.parametrize(
    ("way", "call", "factor"),
    [
        ("processor", interrupted, 1),
        ("stretched", lambda: busy(USED), 8),
        ("stretched", interrupted, 2),
        ("stretched", interrupted, 1),  # a rank at full speed among slower ones
    ],
)
def test_the_rate_is_that_of_the_processor_time_times_the_emulated_factor(way, call, factor):
    rate, one = measured(way, call, factor=factor)
    assert rate == pytest.approx(1000 / USED / factor, rel=0.1)
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


@pytest.mark.parametrize("way", ["processor", "elapsed", "stretched"])
def test_what_comes_before_a_call_is_not_timed(way):
    calls = []

    def product():
        calls.append("before")
        busy(2 * USED)

    def updates():
        calls.append("call")
        busy(USED)

    one = Meter(make_tracer(), way, batch=2 * USED)
    probe = dataclasses.replace(probe_of(updates), before=product)
    rate = one.visit(probe, USED, 0.05)
    assert rate < 1.2 * 1000 / USED
    assert rate > 0.8 * 1000 / USED or way == "elapsed"  # others may delay it
    calls.clear()
    parts = dataclasses.replace(probe, units=3000, then=lambda: calls.append("then") or busy(2 * USED))
    rate = one.visit(parts, USED, 0.05)
    assert rate < 1.2 * 1000 / USED
    assert rate > 0.8 * 1000 / USED or way == "elapsed"  # others may delay it
    assert calls[:4] == ["before", "call", "before", "then"]


def test_the_time_of_reading_cold_clocks_is_that_of_no_call_at_all(monkeypatch):
    one, calls = Meter(make_tracer(), "elapsed"), []
    probe = dataclasses.replace(probe_of(calls.clear), before=lambda: None, then=calls.clear)
    took = {probe.call: (9e-6, 8e-6)}
    monkeypatch.setattr(one, "_stamped", lambda call, *_: took.get(call, (3e-6, 2e-6)))
    assert one._timed(probe, 2) == pytest.approx((4 * 6e-6, 4 * 6e-6))


def test_a_call_during_which_the_clock_of_the_thread_stood_still_is_not_the_least(monkeypatch):
    one, used = Meter(make_tracer(), "stretched", batch=6e-5), iter((2e-4, 0.0, 1e-4))
    monkeypatch.setattr(one, "_timed", lambda probe, calls: (1e-4, next(used)))
    assert one.visit(probe_of(lambda: None), 1e-4, 1.0) == pytest.approx(1000 / 1e-4)


def test_a_stretched_visit_times_calls_one_by_one_and_goes_by_the_least_of_the_host():
    tracer, first = make_tracer(), iter((3 * USED, 2 * USED))
    one = Meter(tracer, "stretched", 2.0, batch=USED)
    rates = [one.visit(probe_of(lambda: busy(next(first, USED))), USED, 1.0) for _ in range(2)]
    assert tracer.counts()[AXPY] == 2 * meter.LEARNT
    assert rates == pytest.approx([1000 / USED / 2] * 2, rel=0.1)
    quicker = {name: least / 4 for name, least in one._least.items()}
    one.agree(type("Host", (), {"allgather": lambda self, mine: [mine, ("cores", quicker)]})())
    assert one.visit(probe_of(lambda: busy(USED)), USED, 1.0) == pytest.approx(4 * rates[1], rel=0.1)


@pytest.mark.parametrize(
    ("cores", "number", "takes"),
    [(1, AXPY, 5.0), (2, AXPY, 2.0), (1, SEND, 8.0)],
)
def test_a_device_computes_as_the_median_rank_of_its_host_does_and_copies_in_its_own_time(
    monkeypatch, cores, number, takes
):
    """One that takes 8 s beside cores that take 2 s; what is not computing is not slowed either."""
    one, factor = Meter(make_tracer(), "stretched", 4.0, on_device=True), 4.0 if number == AXPY else 1.0
    monkeypatch.setattr(one, "_timed", lambda probe, calls: (8.0, 8.0))
    probe = dataclasses.replace(probe_of(lambda: None), number=number)
    assert one.visit(probe, 1.0, 1.0) == pytest.approx(1000 / 8 / factor)
    least = {(*meter._name(probe), "cores"): 2.0}
    one.agree(type("Host", (), {"allgather": lambda self, mine: [mine] + [("cores", least)] * cores})())
    assert one.visit(probe, 1.0, 1.0) == pytest.approx(1000 / takes / factor)


def test_crowds_are_measured_by_what_passes_and_emulated_ranks_by_their_factor():
    assert way_of(False, 2, 2, None) == "processor"
    assert way_of(False, 3, 2, None) == way_of(False, 1, 2, 0.25) == "elapsed"  # a crowd, a quota
    assert way_of(True, 4, 2, 0.25) == "stretched"


def test_where_processor_time_is_counted_in_ticks_a_call_costs_what_passes(monkeypatch):
    monkeypatch.setattr(time, "thread_time_ns", lambda: time.perf_counter_ns() // 10**7 * 10**7)
    assert way_of(False, 2, 2, None) == "elapsed"
    one = Meter(make_tracer(), "elapsed", batch=USED)
    cost = one.cost(probe_of(interrupted))
    assert cost > 0.9 * (USED + SLEPT)
    assert one.calls(cost) == 1


def test_the_cost_of_a_call_is_its_processor_time():
    one = Meter(make_tracer(), "stretched", 2.0, batch=USED)
    cost = one.cost(probe_of(interrupted))
    assert cost == pytest.approx(USED, rel=0.2)
    assert one.calls(USED / 4) == 4 * meter.LEARNT
    assert one.calls(100 * USED) == 1


class Quarter:
    """A thread with a quarter of a processor: what it owes is withheld in lumps, as the clock is read."""

    ticks_per_second = 1.0

    def __init__(self):
        self.wall = self.used = self.owed = 0.0

    def work(self, seconds):
        self.wall += seconds
        self.used += seconds
        self.owed += 3 * seconds

    def now(self):
        return self.wall

    def begin(self, phase):
        pass

    end = begin

    def thread_time_ns(self):
        if self.owed >= 15e-3:
            self.wall, self.owed = self.wall + self.owed, 0.0
        return round(self.used * 1e9)


def test_a_short_call_after_a_long_one_is_as_slow_as_the_quota_and_no_slower(monkeypatch):
    thread = Quarter()
    clocks = SimpleNamespace(perf_counter=thread.now, thread_time_ns=thread.thread_time_ns)
    monkeypatch.setattr(meter, "time", clocks)
    monkeypatch.setattr(meter, "counted_in_ticks", lambda: False)
    updates = dataclasses.replace(
        probe_of(lambda: thread.work(1e-4)), before=lambda: thread.work(1e-3), then=lambda: thread.work(2e-4)
    )
    rate = Meter(thread, "elapsed").visit(updates, 1e-4, 1.0)
    assert rate == pytest.approx(1000 / (4 * 3e-4), rel=0.03)
