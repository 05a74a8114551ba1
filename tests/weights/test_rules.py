import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.weights.make import comm_shares, equal_finish, rate_shares, time_shares


@pytest.mark.row("004:9.1.11a")
def test_time_shares_are_the_speeds_whatever_the_shares_of_the_run():
    cells = np.array([600, 300, 100])
    speeds = np.array([4.0, 2.0, 2.0])
    seconds = cells / speeds
    assert time_shares(seconds / cells).shares == pytest.approx((0.5, 0.25, 0.25))


def test_intervals_hold_the_shares_and_shrink_with_more_sets():
    noise = np.random.default_rng(0)
    cost = 1 / np.array([1, 1, 0.5, 0.25])
    few, many = (time_shares(cost * (1 + 0.02 * noise.standard_normal((n, 4)))) for n in (5, 80))
    for found in (few, many):
        assert all(i.low <= s <= i.high for s, i in zip(found.shares, found.intervals))
    assert all(m.high - m.low < f.high - f.low for f, m in zip(few.intervals, many.intervals))


def test_noise_that_hits_all_ranks_of_a_set_at_once_leaves_the_shares_sharp():
    common = np.random.default_rng(1).uniform(1, 3, (30, 1))
    found = time_shares(common * [1.0, 2.0])
    assert all(i.high - i.low < 1e-12 for i in found.intervals)


def test_one_set_gives_shares_without_intervals():
    assert time_shares([1.0, 3.0]).intervals == (None, None)
    assert time_shares([1.0, 3.0]).shares == pytest.approx((0.75, 0.25))


@pytest.mark.parametrize("cost", [[], [[1.0, 0.0]], [[1.0, -1.0]], [[1.0, np.nan]]])
def test_costs_must_be_positive(cost):
    with pytest.raises(InputError, match="positive"):
        time_shares(cost)


def test_one_phase_rates_are_the_shares():
    assert rate_shares([[3.0], [1.0]], [1.0]).shares == pytest.approx((0.75, 0.25))


def test_phases_are_mixed_by_their_time_and_not_by_their_speed():
    # rank 0 spends half its time in each phase; rank 1 is as fast in one and takes twice as long in the other
    found = rate_shares([[10.0, 1e6], [10.0, 0.5e6]], [0.5, 0.5], reference=0)
    assert found.cost == pytest.approx((1.0, 1.5))
    assert found.shares == pytest.approx((0.6, 0.4))


def test_the_units_of_a_phase_do_not_matter():
    speeds, mix = np.array([[3.0, 7.0], [2.0, 9.0], [5.0, 1.0]]), [0.2, 0.8]
    plain = rate_shares(speeds, mix).shares
    assert rate_shares(speeds * [1e3, 1e-6], mix).shares == pytest.approx(plain)


def test_rates_that_do_not_fit_the_mix_are_refused():
    with pytest.raises(InputError, match="the same number"):
        rate_shares([[1.0, 2.0]], [1.0])
    with pytest.raises(InputError, match="positive"):
        rate_shares([[1.0, 0.0]], [0.5, 0.5])


def test_equal_finish_is_the_closed_form():
    cost, C = np.array([1.0, 2.0, 4.0]), np.array([5.0, 0.0, 12.0])
    cells, T = equal_finish(cost, C, 100)
    assert cells.sum() == pytest.approx(100)
    assert cells * cost + C == pytest.approx([T] * 3)


def test_equal_finish_gives_nothing_to_a_rank_that_only_talks():
    cells, T = equal_finish([1.0, 1.0, 1.0], [0.0, 0.0, 500.0], 100)
    assert cells.tolist() == [50, 50, 0]
    assert T == 50


def test_without_communication_the_comm_rule_is_the_time_rule():
    found = comm_shares([1.0, 2.0, 4.0], lambda shares: np.zeros(3), 1000)
    assert found.shares == pytest.approx(time_shares([1.0, 2.0, 4.0]).shares)
    assert found.settled
    assert found.left_out == ()


def test_the_comm_rule_finds_equal_finish_with_communication_that_depends_on_the_shares():
    cost, cells = np.array([1.0, 1.0, 3.0]), 3000

    def communication(shares):  # a surface on a slow link for the last rank
        return np.array([1.0, 1.0, 8.0]) * (np.array(shares) * cells) ** (2 / 3)

    found = comm_shares(cost, communication, cells)
    finish = np.array(found.shares) * cells * cost + communication(found.shares)
    assert found.settled
    assert finish.max() / finish.min() - 1 < 0.01
    by_time = np.array(time_shares(cost).shares)
    assert found.seconds < 0.95 * float((by_time * cells * cost + communication(by_time)).max())


def test_interfaces_that_jump_end_at_the_best_round_seen():
    calls = []

    def jumping(shares):
        calls.append(shares)
        return np.array([0.0, 300.0 if len(calls) % 2 else 0.0])

    found = comm_shares([1.0, 1.0], jumping, 1000, rounds=7)
    assert len(calls) == found.rounds <= 7
    assert found.seconds <= 650


def test_a_rank_behind_a_hopeless_link_is_left_out_with_one_cell():
    found = comm_shares([1.0, 1.0, 1.0], lambda s: np.array([0.0, 0.0, 900.0]), 1000)
    assert found.left_out == (2,)
    assert found.shares[2] == pytest.approx(1 / 1000, rel=0.01)
    assert sum(found.shares) == pytest.approx(1)


def test_the_comm_rule_refuses_what_it_cannot_use():
    with pytest.raises(InputError, match="communication of 1 rank;"):
        comm_shares([1.0, 1.0], lambda s: [0.0], 10)
    with pytest.raises(InputError, match="1 cell for 2 ranks"):
        comm_shares([1.0, 1.0], lambda s: [0.0, 0.0], 1)


def test_costs_say_the_same_of_two_ranks_as_their_shares():
    cost = [[4.0, 5.0], [6.0, 5.0], [5.0, 4.9]]  # medians 5 and 5, but shares of sets: 5/9, 5/11, 49/99
    found = time_shares(cost)
    assert found.shares == pytest.approx((49 / 99, 50 / 99))
    assert found.cost[1] / found.cost[0] == pytest.approx(found.shares[0] / found.shares[1])
    assert found.cost[0] * found.cost[1] == pytest.approx(5.0 * 5.0)
