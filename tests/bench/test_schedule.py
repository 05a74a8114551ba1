"""The order of runs: all of them once, or as many as a time limit allows; durations are simulated."""

import math

import numpy as np
import pytest

from fembench.bench.campaign_file import CampaignRun, by_importance, run_id
from fembench.bench.schedule import InOrder, WithinTime, forecast, foreseen, next_case
from fembench.records.case import Case

CASES = [Case.of(mesh="m", ranks=n, label=f"case {k}") for k, n in enumerate((1, 2, 4, 2, 1, 8, 2, 1, 4, 2))]


def firsts(n):
    return [CampaignRun(run_id(case, 1), case, 1) for case in CASES[:n]]


class Simulated:
    """Runs whose true durations are known here only, on a clock of their own."""

    def __init__(self, true, prior, given, rng=None, noise=0.0, kept=(), crash=()):
        self.true, self.rng, self.noise, self.crash = dict(zip(CASES, true)), rng, noise, crash
        self.now, self.given, self.ran = 0.0, given, []
        prior = dict(zip(CASES, prior))
        runs = firsts(len(true))
        self.order = WithinTime(runs, kept, lambda cases: [prior[c] for c in cases], given, lambda: self.now)

    def go(self, meanwhile=lambda run: None):
        for run in self.order:
            takes = self.true[run.case] * (1 + self.noise * self.rng.standard_normal() if self.rng else 1)
            ends = takes <= self.order.limit
            self.now += min(takes, self.order.limit)
            self.ran.append(run)
            self.order.ended(run, ran=True, recorded=ends and run.case not in self.crash, cut=not ends)
            meanwhile(run)
        return self

    def times(self):
        """[case] how often it ran."""
        return [sum(run.case == case for run in self.ran) for case in self.true]


@pytest.mark.parametrize("seed", range(60))
def test_the_time_given_is_kept_within_a_tenth_whatever_was_expected_of_the_runs(seed):
    """Durations from 4 s to over a minute, scattered by 10 %; all expectations are wrong by a common factor
    of up to three, and each by a factor of its own."""
    rng = np.random.default_rng(seed)
    n, given = int(rng.integers(3, 11)), 60 * float(rng.uniform(1.5, 20))
    true = 4 + rng.lognormal(2, 1, n).clip(0, given / 3)
    true[rng.integers(n)] = rng.uniform(4, 8)  # some run is short: others end within a tenth only by chance
    prior = true * rng.uniform(1 / 3, 3) * rng.lognormal(0, 0.4, n)
    done = Simulated(true, prior, given, rng, 0.1).go()
    assert 0.9 * given <= done.now <= 1.1 * given
    assert all(done.times()) or done.order.left_out


@pytest.mark.parametrize(
    ("true", "prior", "given", "times", "left_out"),
    [
        ([34.0] * 3, [34.0] * 3, 100.0, [1, 1, 0], CASES[2:3]),  # it would end late
        ([30.0] * 5, [30.0] * 5, 100.0, [1, 1, 1, 0, 0], CASES[3:5]),  # the least important ones
        ([10.0, 500.0, 10.0], [10.0, 500.0, 10.0], 60.0, [3, 0, 3], CASES[1:2]),
        ([10.0] * 4, [100.0] * 4, 120.0, [3] * 4, []),  # others show how fast the machine is
        ([10.0] * 4, [150.0] * 4, 100.0, [3, 3, 2, 2], []),
    ],
)
def test_a_run_is_begun_only_if_it_is_expected_to_end_in_time(true, prior, given, times, left_out):
    done = Simulated(true, prior, given).go()
    assert (done.times(), done.order.left_out) == (times, left_out)
    assert done.order.seconds_left >= 0


def test_a_case_that_failed_is_not_left_out_for_lack_of_time():
    done = Simulated([10.0, 10.0], [10.0, 10.0], 60.0, crash=[CASES[1]]).go()
    assert (done.times(), done.order.left_out) == ([5, 1], [])


@pytest.mark.parametrize("late", [2.0, 40.0])
def test_a_run_that_takes_much_longer_than_expected_is_ended_a_twentieth_after_the_time_given(late):
    done = Simulated([10.0, 100.0 * late], [10.0, 50.0], 100.0).go()
    assert done.now <= 105 + 1e-9
    assert done.times()[1] == 1  # it is not tried again
    assert done.order.left_out == [CASES[1]]


def test_a_case_whose_second_run_is_cut_has_a_record_and_is_not_left_out():
    sim = Simulated([10.0], [10.0], 60.0)
    sim.go(lambda run: sim.true.update({CASES[0]: 1000.0}))
    assert sim.times() == [2]
    assert sim.order.left_out == []


def test_if_there_is_plenty_of_time_every_case_runs_once_before_any_runs_again():
    done = Simulated([10.0, 12.0, 8.0], [None, 1.0, 1.0], 300.0).go()
    assert [run.case for run in done.ran[:6]] == CASES[:3] * 2
    assert [run.repetition for run in done.ran[:6]] == [1, 1, 1, 2, 2, 2]
    assert len({run.id for run in done.ran}) == len(done.ran)
    assert done.order.left_out == []


def test_runs_with_a_record_are_given_first_and_take_no_time():
    kept = firsts(2)
    order = Simulated([30.0] * 3, [30.0] * 3, 65.0, kept=kept).order
    again = CampaignRun(run_id(CASES[0], 2), CASES[0], 2)
    assert order.planned() == [*firsts(3), again]


def test_cases_that_come_to_be_known_during_the_runs_are_placed_by_their_importance():
    runs = firsts(4)
    sim = Simulated([10.0] * 4, [10.0] * 4, 80.0)
    few = [runs[0], runs[3]]
    sim.order = WithinTime(few, [], lambda cases: [10.0] * len(cases), 80.0, lambda: sim.now)
    sim.go(lambda run: sim.order.renew(runs) if len(sim.ran) == 1 else None)
    assert [run.case for run in sim.ran[:4]] == CASES[:4]


def test_what_is_planned_is_what_runs_if_all_take_as_long_as_expected():
    sim = Simulated([20.0, 30.0, 5.0], [20.0, 30.0, 5.0], 130.0)
    planned = sim.order.planned()
    assert sim.go().ran == planned


def test_a_forecast_is_a_case_s_own_mean_or_what_was_expected_times_how_far_off_the_others_were():
    assert forecast([10.0, 20.0, 30.0], [[], [], []]) == [10.0, 20.0, 30.0]
    assert forecast([10.0, 20.0, 30.0], [[14.0, 16.0], [], []]) == [15.0, 30.0, 45.0]
    assert forecast([10.0, None], [[12.0], []]) == [12.0, 12.0]  # a mesh file not yet run: as the others
    assert min(forecast([0.0, None], [[], []])) > 0


def test_the_next_case_is_that_which_ran_least_often_of_those_that_end_in_time():
    assert next_case([5.0, 5.0], [1, 0], 10.0) == 1
    assert next_case([5.0, 50.0], [1, 0], 10.0) == 0
    assert next_case([5.0, 3.0], [1, 0], 1.0) is None
    assert next_case([5.0, 3.0], [0, 0], 1.0) == 1  # the first of all: the shortest
    assert next_case([math.inf], [0], 1.0) is None
    assert foreseen([4.0, 3.0], [0, 0], 10.0) == [0, 1, 1]


def test_without_a_limit_every_run_comes_once_and_those_added_meanwhile_at_the_end():
    runs, seen = firsts(3), []
    order = InOrder(runs[:2], runs[:1], lambda cases: [10.0] * len(cases))
    assert (order.place(1), order.seconds_left, order.limit) == ("1/2", 10.0, math.inf)
    for run in order:
        seen.append(run)
        order.ended(run, ran=run != runs[0], recorded=True)
        if len(seen) == 2:
            assert order.seconds_left == 0
            order.renew(runs)
            assert (order.place(3), order.seconds_left) == ("3/3", order.seconds_of(runs[2]))
    assert seen == runs


def test_the_time_left_without_a_limit_follows_from_the_runs_so_far_and_from_what_was_expected():
    """The first took twice as long as expected: so will the others."""
    now, runs = [0.0], firsts(3)
    order = InOrder(
        runs, [], lambda cases: [float(10 * case.placement.ranks) for case in cases], lambda: now[0]
    )
    left = [order.seconds_left]
    for run in order:
        now[0] += 20.0 * run.case.placement.ranks
        order.ended(run, ran=True, recorded=True)
        left.append(order.seconds_left)
    assert left == [70.0, 120.0, 80.0, 0.0]


def test_no_time_is_told_while_nothing_says_how_long_a_run_takes():
    runs = firsts(2)
    order = InOrder(runs, [], lambda cases: [None] * len(cases))
    assert (order.seconds_left, order.seconds_of(runs[0])) == (None, None)


def test_within_a_limit_a_run_is_told_by_its_number_alone_as_the_others_depend_on_how_long_it_takes():
    sim = Simulated([10.0, 12.0], [10.0, 12.0], 60.0)
    told = []
    sim.go(lambda run: told.append(sim.order.place(len(sim.ran))))
    assert told == [f"run {k}" for k in range(1, len(sim.ran) + 1)]
    assert sim.order.seconds_of(firsts(2)[1]) == 12.0


def test_importance_is_the_order_of_the_cases_but_the_base_of_a_speedup_comes_first():
    two, one = Case.of(mesh="m", ranks=2), Case.of(mesh="m", ranks=1)
    other, csr = two.with_(mesh="l"), two.with_(storage="csr")
    assert [run.case for run in by_importance([two, other, one])] == [one, two, other]
    assert [run.case for run in by_importance([csr, one])] == [csr, one]
