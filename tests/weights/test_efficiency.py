import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.weights.scaling import captured_gain, heterogeneous_efficiency, ideal_seconds, imbalance


def noisy(middle, n, seed, spread=0.01):
    return middle * (1 + spread * np.random.default_rng(seed).standard_normal(n))


def test_ideal_time_is_work_over_the_sum_of_speeds():
    assert ideal_seconds(60, [1, 1, 0.5, 0.5]) == 20


def test_equal_ranks_make_it_the_plain_efficiency():
    assert heterogeneous_efficiency(100, [2.0] * 4, 15.0) == pytest.approx((100 / 2) / (4 * 15))


def test_an_equal_split_on_unequal_ranks_is_efficient_by_slowest_over_mean():
    speeds = np.array([1, 1, 0.5, 0.5])
    seconds = (100 / 4) / speeds.min()
    assert heterogeneous_efficiency(100, speeds, seconds) == pytest.approx(0.5 / 0.75)


@pytest.mark.parametrize("speeds", [[], [1, 0], [1, np.inf]])
def test_speeds_must_be_positive(speeds):
    with pytest.raises(InputError, match="positive"):
        ideal_seconds(1, speeds)


def test_imbalance_is_max_over_mean_less_one_in_each_phase():
    busy = [[1.0, 2.0, 0.0], [3.0, 2.0, 0.0]]
    assert imbalance(busy) == pytest.approx([0.5, 0.0, 0.0])
    assert imbalance([1.0, 1.0, 4.0]) == pytest.approx(1.0)


def test_captured_gain_is_the_part_of_what_was_to_gain():
    found = captured_gain(noisy(20, 15, 1), noisy(13, 15, 2), 12.5)
    assert found.value == pytest.approx((20 - 13) / (20 - 12.5), abs=0.03)
    assert found.interval.low < 7 / 7.5 < found.interval.high
    assert found.interval.high - found.interval.low < 0.1
    assert found.room == pytest.approx(7.5 / 20, abs=0.01)


def test_the_interval_covers_the_truth_nineteen_times_in_twenty():
    truth, hits = (20 - 14) / (20 - 12), 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        equal, weighted = (t * (1 + 0.02 * rng.standard_normal(12)) for t in (20, 14))
        hits += truth in captured_gain(equal, weighted, 12.0).interval
    assert 185 <= hits <= 198


def test_nothing_is_captured_where_the_equal_run_is_ideal_already():
    found = captured_gain(noisy(10, 15, 1), noisy(10, 15, 2), noisy(10, 15, 3))
    assert found.nothing_to_capture
    assert found.interval is None


def test_runs_of_other_numbers_are_drawn_on_their_own():
    found = captured_gain(noisy(20, 9, 1), noisy(14, 12, 2), 12.0)
    assert found.value == pytest.approx(0.75, abs=0.05)
    assert found.interval is not None


def test_a_single_sample_gives_a_value_without_an_interval():
    found = captured_gain([20.0], [14.0], 12.0)
    assert (found.value, found.interval) == (0.75, None)
    assert captured_gain([10.0], [14.0], 12.0).nothing_to_capture


def test_few_samples_that_scatter_are_not_taken_for_nothing_to_capture():
    equal, weighted = [20.0, 28.0, 15.0], [14.0, 15.0, 13.5]
    found = captured_gain(equal, weighted, 12.0)
    assert (found.value, found.interval) == (pytest.approx((21 - 42.5 / 3) / 9), None)
    assert captured_gain(equal * 2, weighted * 2, 20.5).nothing_to_capture


def test_no_samples_are_an_error():
    with pytest.raises(InputError, match="no samples"):
        captured_gain([], [1.0], 1.0)
