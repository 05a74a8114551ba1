"""Emulated slowness stretches what is computed, and nothing else."""

import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fembench.characterize.load_now import kernel_times, slowness_kernels
from fembench.host.provenance import host_key
from fembench.records.phases import ALLREDUCE, AXPY, CG, SPMV_INTERIOR
from fembench.synthetic import slowness, waits
from fembench.synthetic.slowness import FULL_SPEED, ONCE, TASK, EmulatedSlowness, slowness_of, turn_of
from fembench.synthetic.speeds import Change
from fembench.synthetic.waits import HeardTracer, sleep_until
from fembench.timing.tracer import NullTracer, make_tracer


def slow(speed, dilate=1.0, **how):
    """The slowness of a rank of this speed, beside one at full speed."""
    return slowness_of(0, (speed, 1.0), dilate, **how)


def busy(seconds):
    """Use so much processor time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.mark.row("004:9.1.8")
@pytest.mark.parametrize(("speed", "dilate"), [(0.25, 1.0), (0.5, 3.0)])
def test_a_compute_phase_lasts_as_its_speed_and_dilation_say(speed, dilate):
    tracer = slow(speed, dilate).tracer(make_tracer())
    used = time.thread_time()
    tracer.begin(SPMV_INTERIOR)
    busy(0.02)
    used = time.thread_time() - used
    tracer.end(SPMV_INTERIOR)
    assert tracer.seconds()[SPMV_INTERIOR] >= dilate / speed * used * 0.98


class Clock:
    """Stands for `time`: it goes on when it is asked, and when somebody sleeps."""

    def __init__(self):
        self.wall = self.used = 0

    def perf_counter_ns(self):
        self.wall += 100
        return self.wall

    def perf_counter(self):
        return 1e-9 * self.perf_counter_ns()

    def thread_time_ns(self):
        return self.used

    def sleep(self, seconds):
        self.wall += round(1e9 * seconds)

    def work(self, seconds, held=0.0):
        self.used += round(1e9 * seconds)
        self.wall += round(1e9 * (seconds + held))


@pytest.fixture
def clock(monkeypatch):
    """The clock that stands for `time`."""
    made = Clock()
    monkeypatch.setattr(slowness, "time", made)
    monkeypatch.setattr(waits, "time", made)
    return made


def test_asking_for_the_processor_time_is_not_stretched(clock, monkeypatch):
    def ask():
        clock.used += 600
        return clock.used

    monkeypatch.setattr(clock, "thread_time_ns", ask)
    (seconds,) = lasting(slow(1.0, 100.0), clock, 1e-6, phase=AXPY)
    assert 100e-6 <= seconds < 102e-6  # 160 were the 600 ns stretched too


def test_what_was_learned_is_what_phases_last(clock):
    """Two units of time unstretched; later the core is slow, and the phase lasts as if it were not."""
    rank = slow(1.0, 10.0)
    for _ in rank.rehearsals(None, 0.0, most=1):
        assert lasting(rank, clock, 2e-3, phase=AXPY) == pytest.approx([2e-3], rel=0.01)
    lasting(rank, clock, 2e-3, 2e-3, phase=AXPY)  # the second and third have other phases before
    for seconds in (5e-3, 1e-3):  # a slow core, and a fast one
        rank.new_work(None)
        assert lasting(rank, clock, seconds, phase=AXPY) == pytest.approx([0.02], rel=0.01)


def test_a_piece_of_work_lasts_as_the_chosen_one_of_its_rehearsals_and_each_learning_is_anew(clock):
    rank = slow(1.0, 10.0)
    for times, expected in (((2e-3, 5e-3, 9e-3), 5e-3), ((7e-3, 6e-3, 8e-3), 7e-3)):
        for turn in rank.rehearsals(Ranks(), math.inf, most=3, among=statistics.median):
            rank.new_work("task", {TASK: 2.0})
            lasting(rank, clock, 2 * times[turn], phase=TASK)
        assert rank.learned == {"task": pytest.approx(expected, rel=0.01)}
        rank.new_work("task", {TASK: 3.0})
        assert lasting(rank, clock, 1e-3, phase=TASK) == pytest.approx([30 * expected], rel=0.01)


@pytest.mark.parametrize("crowded", [True, False])
def test_what_made_a_phase_too_long_is_made_up_for_in_the_next(clock, crowded):
    rank = slow(0.5, 1.0, crowded=crowded)
    found = lasting(rank, clock, *[0.005] * 3, held=0.012)  # 5 ms of work and 5 ms of sleep: 7 ms late
    assert found == pytest.approx([0.017, 0.005, 0.008], rel=1e-3)


@pytest.mark.parametrize("crowded", [True, False])
def test_only_ranks_that_share_a_core_sleep(clock, monkeypatch, crowded):
    slept = []
    monkeypatch.setattr(clock, "sleep", lambda s: slept.append(s) or Clock.sleep(clock, s))
    lasting(slow(0.5, 1.0, crowded=crowded), clock, 0.005)
    assert bool(slept) == crowded


def test_what_holds_a_rank_for_long_is_not_made_up_for_in_full(clock):
    found = lasting(slow(0.1, 1.0), clock, 0.01, 0.01, held=1.0)
    assert found == pytest.approx([1.010, 0.100 - 0.050], rel=1e-3)


def lasting(rank, clock, *works, phase=SPMV_INTERIOR, after=(), held=0.0):
    """Seconds that the phase lasts with each of these works; `after` are phases that come before it.

    Something else holds the rank for `held` seconds of the first.
    """
    found = []
    for k, work in enumerate(works):
        for other in after:
            rank.begin(other)
            rank.end(other)
        begin = clock.wall
        rank.begin(phase)
        clock.work(work, 0.0 if k else held)
        rank.end(phase)
        found.append((clock.wall - begin) * 1e-9)
    return found


def test_the_time_of_a_device_is_stretched_though_its_rank_waits(clock):
    rank = slow(0.5, 1.0, on_device=True)
    begin = clock.wall
    rank.begin(SPMV_INTERIOR)
    clock.work(0.0, held=0.004)  # no processor time
    rank.end(SPMV_INTERIOR)
    assert (clock.wall - begin) * 1e-9 == pytest.approx(0.008, rel=1e-3)


def test_the_least_that_the_same_work_took_is_stretched(clock):
    rank = slow(0.5, 2.0)
    found = lasting(rank, clock, 0.004, 0.006, 0.003, 0.004, after=(CG, ALLREDUCE))
    assert found == pytest.approx([0.016, 0.016, 0.012, 0.012], rel=1e-3)


def test_work_done_once_is_stretched_by_what_it_took_and_not_by_the_least(clock):
    once = slow(0.5)
    once.new_work(ONCE)
    found = lasting(once, clock, 0.003, 0.006, 0.004, after=(CG, ALLREDUCE))
    assert found == pytest.approx([0.006, 0.012, 0.008], rel=1e-3)


def test_work_is_told_apart_by_what_came_before_and_by_its_name(clock):
    rank = slow(0.5, 1.0)
    for work, name, before, seconds in (
        (0.002, None, ALLREDUCE, 0.004),
        (0.003, None, CG, 0.006),
        (0.005, "other blocks", ALLREDUCE, 0.010),
        (0.003, None, ALLREDUCE, 0.004),
    ):
        rank.new_work(name)
        assert lasting(rank, clock, work, after=(CG, before)) == pytest.approx([seconds], rel=1e-3)


class Ranks:
    """Stands for a communicator whose other ranks bring these."""

    def __init__(self, *others):
        self.others = others

    def allgather(self, mine):
        return [mine, *self.others]

    def bcast(self, mine):
        return mine


def test_ranks_of_a_host_go_by_the_least_time_of_a_unit_of_work(clock):
    here, (mine, twice) = host_key(), (slow(0.5, 1.0) for _ in range(2))
    lasting(mine, clock, 0.006, phase=SPMV_INTERIOR)
    lasting(twice, clock, 0.008, phase=SPMV_INTERIOR)  # twice the work in 4 / 3 of the time
    other = (here, twice.spent({"product": 2.0}))
    mine.agree(Ranks(other, ("elsewhere", {"product": 1.0}), (here, {})), {"product": 1.0})
    mine.new_work(None)
    assert lasting(mine, clock, 0.005, phase=SPMV_INTERIOR) == pytest.approx([0.008], rel=1e-3)


@pytest.mark.parametrize(
    ("work", "spent"),
    [
        ({"product": 4.0, "vectors": 1.0}, {"product": 1e6, "vectors": 2e6}),
        ({"product": 0, "vectors": 1.0}, {"vectors": 2e6}),  # none of it
    ],
)
def test_kinds_of_work_are_compared_apart(clock, work, spent):
    rank = slow(0.5, 1.0)
    lasting(rank, clock, 0.002, phase=AXPY)
    lasting(rank, clock, 0.004, phase=SPMV_INTERIOR)
    assert rank.spent(work) == pytest.approx(spent, rel=1e-3)


def test_what_was_done_once_and_not_again_is_not_compared(clock):
    rank = slow(0.5, 1.0)
    lasting(rank, clock, 0.009, phase=SPMV_INTERIOR, after=(CG, CG))  # a cold first time
    rank.spent({"product": 1.0})
    lasting(rank, clock, 0.004, 0.003, phase=SPMV_INTERIOR, after=(CG, ALLREDUCE))
    assert rank.spent({"product": 1.0}) == pytest.approx({"product": 6e6}, rel=1e-3)


def test_other_amounts_of_the_same_work_last_in_proportion(clock):
    rank = slow(0.5, 1.0)
    rank.new_work("blocks", {SPMV_INTERIOR: 4})
    lasting(rank, clock, 0.004)
    rank.new_work("blocks", {SPMV_INTERIOR: 6})
    assert lasting(rank, clock, 0.007) == pytest.approx([0.012], rel=1e-3)  # as 1 ms for one
    assert rank.spent({"product": 1.0}) == pytest.approx({"product": 12e6}, rel=1e-3)


def test_work_that_becomes_heavier_takes_longer_from_that_iteration_on(clock):
    rank = slow(0.5, 1.0)
    rank.new_work("blocks", {SPMV_INTERIOR: 4}, {10: 3.0, 20: 1.5})
    found = []
    for iteration in (9, 10, 19, 20, 0):
        rank.follow(iteration)
        found += lasting(rank, clock, 0.004)
    assert found == pytest.approx([0.008, 0.024, 0.024, 0.012, 0.008], rel=1e-3)
    assert rank.spent({"product": 1.0}) == pytest.approx({"product": 20e6}, rel=1e-3)  # the work is the same


def test_a_rank_that_slows_down_goes_by_what_its_work_took_before(clock):
    rank = slow(0.5, 1.0)
    before = (CG, ALLREDUCE)
    assert lasting(rank, clock, 0.002, after=before) == pytest.approx([0.004], rel=1e-3)
    rank.factor = 6.0
    assert lasting(rank, clock, 0.003, after=before) == pytest.approx([0.012], rel=1e-3)


def test_ranks_of_a_host_take_turns_within_their_phases(clock):
    rank = slow(0.1, 1.0, crowded=True, turn=0.5)
    begins = []
    for _ in range(3):
        rank.begin(CG)
        rank.end(CG)
        begin = clock.wall
        rank.begin(SPMV_INTERIOR)
        begins.append((clock.wall - begin) * 1e-9)
        clock.work(0.002)
        rank.end(SPMV_INTERIOR)
        assert (clock.wall - begin) * 1e-9 == pytest.approx(0.020, rel=1e-3)
    # known from the third on: half of 20 - 2 x 2 ms
    assert begins == pytest.approx([0.0, 0.0, 0.008], abs=1e-5)


def test_without_time_to_spare_nobody_waits_for_a_turn(clock):
    rank = slow(0.5, 1.0, crowded=True, turn=0.9)
    assert lasting(rank, clock, 0.002, 0.002, 0.002, after=(CG, CG)) == pytest.approx([0.004] * 3, rel=1e-3)


def test_a_turn_is_a_rank_s_place_on_its_host():
    hosts = ["elsewhere", "here", "here", "elsewhere"]
    assert turn_of(2, hosts) == 0.5
    assert [turn_of(rank, hosts) for rank in (0, 1, 3)] == [0.0, 0.0, 0.5]


@pytest.mark.parametrize("phase", [ALLREDUCE, CG])
def test_other_phases_are_left_alone(phase):
    tracer = slow(0.01, 1.0).tracer(make_tracer())
    tracer.begin(phase)
    busy(0.005)
    tracer.end(phase)
    assert tracer.seconds()[phase] < 0.25


def test_full_speed_leaves_the_tracer_alone_and_does_nothing():
    tracer, rank = make_tracer(), slowness_of(1, (1.0, 1.0))
    assert rank is FULL_SPEED
    assert rank.tracer(tracer) is tracer
    assert list(rank.rehearsals(None, 1.0)) == []
    rank.new_work("any")
    rank.begin(AXPY)
    rank.end(AXPY)
    rank.agree(None, {"product": 1.0})  # without a communicator: nothing is sent
    rank.share(None)
    assert rank.factor == 1


def test_at_full_speed_a_phase_calls_nothing_no_clock_and_no_sleep():
    called = []

    def note(frame, event, what):
        if event in ("call", "c_call"):
            called.append(what.__name__ if event == "c_call" else frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    FULL_SPEED.begin(AXPY)
    FULL_SPEED.end(AXPY)
    FULL_SPEED.new_work("any")
    sys.setprofile(before)
    assert called == ["begin", "end", "new_work", "setprofile"]


def test_a_rank_at_full_speed_among_slower_ones_keeps_its_tracer_and_takes_part():
    tracer, rank = make_tracer(), slowness_of(1, (0.5, 1.0))
    assert rank.tracer(tracer) is tracer
    assert list(rank.rehearsals(Ranks(), 10.0, most=3)) == [0, 1, 2]
    assert slowness_of(0, (0.5, 1.0)).tracer(tracer) is not tracer


def test_rehearsals_end_when_their_time_is_up_but_not_before_the_first(monkeypatch):
    for times, found in (((0.0, 1.0, 3.0), [0, 1]), ((0.0, 3.0), [0])):
        monkeypatch.setattr(slowness.time, "perf_counter", iter(times).__next__)
        assert list(slow(0.5).rehearsals(Ranks(), 2.0)) == found


@pytest.mark.parametrize(
    ("rank", "dilate", "changes", "iterations", "expected"),
    [
        (1, 2.0, {0: (1, 1), 10: (1, 0.5), 20: (1, 0.25)}, (0, 9, 10, 19, 20, 21), [2, 2, 4, 4, 8, 8]),
        (0, 2.0, {0: (1, 1), 10: (1, 0.5), 20: (1, 0.25)}, (0, 10, 20), [2, 2, 2]),
        (0, 3.0, {0: (1, 1), 10: (0.5, 1)}, (0, 10, -1, 0), [3, 6, 6, 3]),  # the next solve
        (0, 4.0, {0: (0.5, 1), 10: (1, 1)}, (0, 10), [8, 4]),
        (0, 1.0, {0: (1,), 10: (0.5,)}, (0, 10), [1, 2]),  # stretched from the start
    ],
)
def test_a_rank_has_the_speed_of_its_iteration(rank, dilate, changes, iterations, expected):
    job = slowness_of(rank, changes[0], dilate, tuple(Change(at, speeds) for at, speeds in changes.items()))
    tracer, factors = job.tracer(NullTracer()), []
    for iteration in iterations:
        tracer.iteration = iteration
        factors.append(job.factor)
    assert factors == expected


def test_a_heard_tracer_offers_all_that_a_tracer_does():
    inner = make_tracer(capacity=4)
    tracer = slow(0.5).tracer(inner)
    names = [name for name in dir(inner) if not name.startswith("_")]
    assert set(names) == {name for name in dir(HeardTracer) if not name.startswith("_")}
    tracer.origin, tracer.ticks_per_second, tracer.message = 5, 2e9, 0
    assert (inner.origin, inner.ticks_per_second) == (5, 2e9)
    for name in ("message", "clock_name", "messages", "capacity", "stored"):
        assert getattr(tracer, name) == getattr(inner, name)
    tracer.add(CG, 0, 3)
    assert tracer.ticks()[CG] == 3
    assert tracer.seconds()[CG] == 1.5e-9
    assert (tracer.dropped, tracer.depth, tracer.carry((1,), (8,))) == (0, 0, inner.carry((1,), (8,)))
    tracer.make_room(0, 7)
    assert inner.capacity == 7
    assert tracer.now() >= 5


def test_state_reaches_the_tracer_inside():
    inner = make_tracer(capacity=8)
    tracer = slow(0.5).tracer(inner)
    tracer.recording, tracer.iteration = True, 7
    tracer.begin(SPMV_INTERIOR)
    tracer.end(SPMV_INTERIOR)
    assert inner.recording
    assert tracer.events()["iteration"].tolist() == [7]
    tracer.reset()
    assert inner.counts().sum() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="timer slack is Linux's")
def test_sleeps_that_should_end_on_time_have_no_slack():
    # in a process of its own: it would stay so in this one
    show = "print(open('/proc/self/timerslack_ns').read())"
    code = f"from fembench.synthetic import waits; waits.timer_slack(waits.FINE); {show}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"]


@pytest.mark.skipif(sys.platform != "linux", reason="timer slack is Linux's")
def test_a_sleep_does_not_end_early_and_other_sleeps_stay_as_coarse_as_they_are(monkeypatch):
    slack = Path("/proc/self/timerslack_ns")
    before, meanwhile = slack.read_text(), []
    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda s: (meanwhile.append(int(slack.read_text())), sleep(s)))
    moment = time.perf_counter_ns() + 2_000_000
    sleep_until(moment)
    assert time.perf_counter_ns() >= moment
    assert meanwhile == [1]
    assert slack.read_text() == before


def test_kernels_that_share_a_phase_are_told_apart():
    names = []

    class Naming(EmulatedSlowness):
        def new_work(self, work):
            names.append(work)

    kernel_times(0, Naming(1.0), 1)
    assert names == list(slowness_kernels())
