"""Emulated slowness stretches what is computed, and nothing else."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from fembench.base.errors import InputError
from fembench.characterize.load_kernels import kernel_times, kernels_of_thesis
from fembench.host.where import host_key
from fembench.records.phases import ALLREDUCE, AXPY, CG, SPMV_INTERIOR
from fembench.synthetic import emulate
from fembench.synthetic.emulate import (
    StretchingTracer,
    agree,
    label,
    learning,
    parse_speeds,
    sleep_until,
    stretched,
)
from fembench.timing.tracer import NullTracer, make_tracer


def busy(seconds):
    """Use so much processor time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_a_compute_phase_lasts_as_its_speed_says():
    tracer = stretched(make_tracer(), 0.25, 1.0)
    used = time.thread_time()
    tracer.begin(SPMV_INTERIOR)
    busy(0.02)
    used = time.thread_time() - used
    tracer.end(SPMV_INTERIOR)
    assert tracer.seconds()[SPMV_INTERIOR] >= 4 * used * 0.98


class Clock:
    """Stands for `time`: it goes on when it is asked, and when somebody sleeps."""

    def __init__(self):
        self.wall = self.used = 0

    def perf_counter_ns(self):
        self.wall += 100
        return self.wall

    def thread_time_ns(self):
        return self.used

    def sleep(self, seconds):
        self.wall += round(1e9 * seconds)

    def work(self, seconds, held=0.0):
        self.used += round(1e9 * seconds)
        self.wall += round(1e9 * (seconds + held))


def test_asking_for_the_processor_time_is_not_stretched(monkeypatch):
    clock = Clock()

    def ask():
        clock.used += 600
        return clock.used

    clock.thread_time_ns = ask
    monkeypatch.setattr(emulate, "time", clock)
    tracer = stretched(NullTracer(), 1.0, 100.0)
    before = clock.wall
    tracer.begin(AXPY)
    clock.work(1e-6)
    tracer.end(AXPY)
    assert 100e-6 <= (clock.wall - before) * 1e-9 < 102e-6  # 160 were the 600 ns stretched too


def test_what_was_learned_is_what_phases_last(monkeypatch):
    """Two units of time unstretched; later the core is slow, and the phase lasts as if it were not."""
    monkeypatch.setattr(emulate, "time", clock := Clock())
    tracer = stretched(NullTracer(), 1.0, 100.0)
    with learning(tracer):
        assert lasts(tracer, clock, 2e-3) == pytest.approx(2e-3, rel=0.01)
    for _ in range(2):  # the second and third have other phases before
        lasts(tracer, clock, 2e-3)
    for seconds in (5e-3, 1e-3):  # a slow core, and a fast one
        tracer.new_work(None)
        assert lasts(tracer, clock, seconds) == pytest.approx(0.2, rel=0.01)


def lasts(tracer, clock, seconds):
    """Seconds of a phase that uses the processor so long."""
    before = clock.wall
    tracer.begin(AXPY)
    clock.work(seconds)
    tracer.end(AXPY)
    return (clock.wall - before) * 1e-9


@pytest.mark.parametrize("crowded", [True, False])
def test_what_made_a_phase_too_long_is_made_up_for_in_the_next(monkeypatch, crowded):
    monkeypatch.setattr(emulate, "time", clock := Clock())
    tracer = stretched(NullTracer(), 0.5, 1.0, crowded=crowded)
    ends = []
    for held in (0.012, 0.0, 0.0):  # with 5 ms of work and 5 ms of sleep, so 7 ms late
        tracer.begin(SPMV_INTERIOR)
        clock.work(0.005, held)
        tracer.end(SPMV_INTERIOR)
        ends.append(clock.wall * 1e-9)
    assert ends == pytest.approx([0.017, 0.022, 0.030], rel=1e-3)


@pytest.mark.parametrize("crowded", [True, False])
def test_only_ranks_that_share_a_core_sleep(monkeypatch, crowded):
    monkeypatch.setattr(emulate, "time", clock := Clock())
    slept = []
    clock.sleep = lambda seconds: slept.append(seconds) or Clock.sleep(clock, seconds)
    tracer = stretched(NullTracer(), 0.5, 1.0, crowded=crowded)
    tracer.begin(SPMV_INTERIOR)
    clock.work(0.005)
    tracer.end(SPMV_INTERIOR)
    assert bool(slept) == crowded


def test_what_holds_a_rank_for_long_is_not_made_up_for_in_full(monkeypatch):
    monkeypatch.setattr(emulate, "time", clock := Clock())
    tracer = stretched(NullTracer(), 0.1, 1.0)
    for held in (1.0, 0.0):
        tracer.begin(SPMV_INTERIOR)
        clock.work(0.01, held)
        tracer.end(SPMV_INTERIOR)
    assert clock.wall * 1e-9 == pytest.approx(1.010 + 0.100 - 0.050, rel=1e-3)


def lasting(tracer, clock, *works, phase=SPMV_INTERIOR, after=()):
    """Seconds that the phase lasts with each of these works; `after` are phases that come before it."""
    found = []
    for work in works:
        for other in after:
            tracer.begin(other)
            tracer.end(other)
        begin = clock.wall
        tracer.begin(phase)
        clock.work(work)
        tracer.end(phase)
        found.append((clock.wall - begin) * 1e-9)
    return found


def test_the_least_that_the_same_work_took_is_stretched(monkeypatch):
    monkeypatch.setattr(emulate, "time", clock := Clock())
    tracer = stretched(NullTracer(), 0.5, 2.0)
    found = lasting(tracer, clock, 0.004, 0.006, 0.003, 0.004, after=(CG, ALLREDUCE))
    assert found == pytest.approx([0.016, 0.016, 0.012, 0.012], rel=1e-3)


def test_a_slowdown_of_now_is_of_what_each_phase_takes_and_not_of_the_least(monkeypatch):
    monkeypatch.setattr(emulate, "time", clock := Clock())
    tracer = StretchingTracer(make_tracer(), 1.05, emulate.spin_until, of_now=True)
    assert lasting(tracer, clock, 0.004, 0.006, 0.003) == pytest.approx([0.0042, 0.0063, 0.00315], rel=1e-3)
    tracer.slow_down(1.0)
    assert lasting(tracer, clock, 0.006) == pytest.approx([0.006], rel=1e-3)


def test_work_is_told_apart_by_what_came_before_and_by_its_name(monkeypatch):
    monkeypatch.setattr(emulate, "time", clock := Clock())
    tracer = stretched(NullTracer(), 0.5, 1.0)
    assert lasting(tracer, clock, 0.002, after=(CG, ALLREDUCE)) == pytest.approx([0.004], rel=1e-3)
    assert lasting(tracer, clock, 0.003, after=(CG, CG)) == pytest.approx([0.006], rel=1e-3)
    tracer.new_work("other blocks")
    assert lasting(tracer, clock, 0.005, after=(CG, ALLREDUCE)) == pytest.approx([0.010], rel=1e-3)
    tracer.new_work(None)
    assert lasting(tracer, clock, 0.003, after=(CG, ALLREDUCE)) == pytest.approx([0.004], rel=1e-3)


class Ranks:
    """Stands for a communicator whose other ranks bring these."""

    def __init__(self, *others):
        self.others = others

    def allgather(self, mine):
        return [mine, *self.others]


def test_ranks_of_a_host_go_by_the_least_time_of_a_unit_of_work(monkeypatch):
    monkeypatch.setattr(emulate, "time", clock := Clock())
    here, (mine, twice) = host_key(), (stretched(NullTracer(), 0.5, 1.0) for _ in range(2))
    lasting(mine, clock, 0.006, phase=SPMV_INTERIOR)
    lasting(twice, clock, 0.008, phase=SPMV_INTERIOR)  # twice the work in 4 / 3 of the time
    other = (here, twice.spent({"product": 2.0}))
    agree(Ranks(other, ("elsewhere", {"product": 1.0}), (here, {})), mine, {"product": 1.0})
    mine.new_work(None)
    assert lasting(mine, clock, 0.005, phase=SPMV_INTERIOR) == pytest.approx([0.008], rel=1e-3)


def test_kinds_of_work_are_compared_apart(monkeypatch):
    monkeypatch.setattr(emulate, "time", clock := Clock())
    tracer = stretched(NullTracer(), 0.5, 1.0)
    lasting(tracer, clock, 0.002, phase=AXPY)
    lasting(tracer, clock, 0.004, phase=SPMV_INTERIOR)
    spent = tracer.spent({"product": 4.0, "vectors": 1.0})
    assert spent == pytest.approx({"product": 1e6, "vectors": 2e6}, rel=1e-3)


def test_what_was_done_once_and_not_again_is_not_compared(monkeypatch):
    monkeypatch.setattr(emulate, "time", clock := Clock())
    tracer = stretched(NullTracer(), 0.5, 1.0)
    lasting(tracer, clock, 0.009, phase=SPMV_INTERIOR, after=(CG, CG))  # a cold first time
    tracer.spent({"product": 1.0})
    lasting(tracer, clock, 0.004, 0.003, phase=SPMV_INTERIOR, after=(CG, ALLREDUCE))
    assert tracer.spent({"product": 1.0}) == pytest.approx({"product": 6e6}, rel=1e-3)


def test_other_amounts_of_the_same_work_last_in_proportion(monkeypatch):
    monkeypatch.setattr(emulate, "time", clock := Clock())
    tracer = stretched(NullTracer(), 0.5, 1.0)
    tracer.new_work("blocks", {SPMV_INTERIOR: 4})
    lasting(tracer, clock, 0.004)
    tracer.new_work("blocks", {SPMV_INTERIOR: 6})
    assert lasting(tracer, clock, 0.007) == pytest.approx([0.012], rel=1e-3)  # as 1 ms for one
    assert tracer.spent({"product": 1.0}) == pytest.approx({"product": 12e6}, rel=1e-3)


def test_kinds_of_work_of_which_there_is_none_are_not_compared(monkeypatch):
    monkeypatch.setattr(emulate, "time", clock := Clock())
    tracer = stretched(NullTracer(), 0.5, 1.0)
    lasting(tracer, clock, 0.002, phase=AXPY)
    lasting(tracer, clock, 0.004, phase=SPMV_INTERIOR)
    assert tracer.spent({"product": 0, "vectors": 1.0}) == pytest.approx({"vectors": 2e6}, rel=1e-3)


def test_a_rank_that_slows_down_goes_by_what_its_work_took_before(monkeypatch):
    monkeypatch.setattr(emulate, "time", clock := Clock())
    tracer = stretched(NullTracer(), 0.5, 1.0)
    before = (CG, ALLREDUCE)
    assert lasting(tracer, clock, 0.002, after=before) == pytest.approx([0.004], rel=1e-3)
    tracer.slow_down(6.0)
    assert lasting(tracer, clock, 0.003, after=before) == pytest.approx([0.012], rel=1e-3)


def test_ranks_of_a_host_take_turns_within_their_phases(monkeypatch):
    monkeypatch.setattr(emulate, "time", clock := Clock())
    tracer = stretched(NullTracer(), 0.1, 1.0, crowded=True, turn=0.5)
    begins = []
    for _ in range(3):
        tracer.begin(CG)
        tracer.end(CG)
        begin = clock.wall
        tracer.begin(SPMV_INTERIOR)
        begins.append((clock.wall - begin) * 1e-9)
        clock.work(0.002)
        tracer.end(SPMV_INTERIOR)
        assert (clock.wall - begin) * 1e-9 == pytest.approx(0.020, rel=1e-3)
    assert begins == pytest.approx(
        [0.0, 0.0, 0.008], abs=1e-5
    )  # known from the third on: half of 20 - 2 x 2 ms


def test_without_time_to_spare_nobody_waits_for_a_turn(monkeypatch):
    monkeypatch.setattr(emulate, "time", clock := Clock())
    tracer = stretched(NullTracer(), 0.5, 1.0, crowded=True, turn=0.9)
    assert lasting(tracer, clock, 0.002, 0.002, 0.002, after=(CG, CG)) == pytest.approx([0.004] * 3, rel=1e-3)


def test_a_turn_is_a_rank_s_place_on_its_host():
    hosts = ["elsewhere", "here", "here", "elsewhere"]
    assert emulate.turn_of(2, hosts) == 0.5
    assert [emulate.turn_of(rank, hosts) for rank in (0, 1, 3)] == [0.0, 0.0, 0.5]


def test_dilation_and_slowness_multiply():
    tracer = stretched(make_tracer(), 0.5, 3.0)
    tracer.begin(SPMV_INTERIOR)
    busy(0.01)
    tracer.end(SPMV_INTERIOR)
    assert tracer.seconds()[SPMV_INTERIOR] >= 0.0595


@pytest.mark.parametrize("phase", [ALLREDUCE, CG])
def test_other_phases_are_left_alone(phase):
    tracer = stretched(make_tracer(), 0.01, 1.0)
    tracer.begin(phase)
    busy(0.005)
    tracer.end(phase)
    assert tracer.seconds()[phase] < 0.25


def test_full_speed_is_the_tracer_itself():
    tracer = make_tracer()
    assert stretched(tracer, 1.0, 1.0) is tracer


def test_state_reaches_the_tracer_inside():
    inner = make_tracer(capacity=8)
    tracer = stretched(inner, 0.5, 1.0)
    tracer.recording, tracer.iteration = True, 7
    tracer.begin(SPMV_INTERIOR)
    tracer.end(SPMV_INTERIOR)
    assert inner.recording
    assert tracer.events()["iteration"].tolist() == [7]
    tracer.reset()
    assert inner.counts().sum() == 0


def test_sleeping_does_not_end_early():
    moment = time.perf_counter_ns() + 2_000_000
    sleep_until(moment)
    assert time.perf_counter_ns() >= moment


@pytest.mark.skipif(sys.platform != "linux", reason="timer slack is Linux's")
def test_sleeps_that_should_end_on_time_have_no_slack():
    # in a process of its own: it would stay so in this one
    show = "print(open('/proc/self/timerslack_ns').read())"
    code = f"from fembench.synthetic import emulate; emulate.timer_slack(emulate.FINE); {show}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"]


@pytest.mark.skipif(sys.platform != "linux", reason="timer slack is Linux's")
def test_other_sleeps_stay_as_coarse_as_they_are(monkeypatch):
    slack = Path("/proc/self/timerslack_ns")
    before, meanwhile = slack.read_text(), []
    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda s: (meanwhile.append(int(slack.read_text())), sleep(s)))
    sleep_until(time.perf_counter_ns() + 2_000_000)
    assert meanwhile == [1]
    assert slack.read_text() == before


def test_speeds_are_read():
    assert parse_speeds("1,0.5", 2) == (1.0, 0.5)
    assert parse_speeds("", 3) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("text", ["1", "1,2", "0,1", "-1,1", "a,b", "nan,1", "1,1,1"])
def test_bad_speeds_are_refused(text):
    with pytest.raises(InputError, match="emulate"):
        parse_speeds(text, 2)


def test_the_label_says_what_was_emulated():
    assert label("", 1.0) == ""
    assert label("1,0.5", 4.0) == "emulated speeds 1,0.5, dilated 4 times"


def test_kernels_that_share_a_phase_are_told_apart():
    names = []

    class Naming(StretchingTracer):
        def new_work(self, work, amounts):
            names.append(work)

    kernel_times(0, Naming(NullTracer(), 1.0, sleep_until), 1)
    assert names == list(kernels_of_thesis())
