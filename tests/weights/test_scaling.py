"""Laws of scaling, and the efficiency of unequal ranks."""

import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.weights.scaling import (
    amdahl,
    captured_gain,
    fit_amdahl,
    fit_gustafson,
    gustafson,
    heterogeneous_efficiency,
    ideal_seconds,
    imbalance,
    speedup_bounds,
)

P = np.array([1, 2, 4, 8, 16])


@pytest.mark.row("003:2.1/2.2")
def test_amdahl_is_p_without_and_one_over_f_with_many_processors():
    assert amdahl(0.0, 64) == 64
    assert amdahl(0.2, 1e12) == pytest.approx(5)
    assert amdahl(0.5, 1e12) == pytest.approx(2)


@pytest.mark.row("004:4e")
@pytest.mark.parametrize("f", [0.0, 0.01, 0.3])
def test_fits_recover_the_fraction_that_made_the_speedups(f):
    fit = fit_amdahl(P, [amdahl(f, p) for p in P])
    assert fit.fraction == pytest.approx(f, abs=1e-12)
    assert fit.worst == pytest.approx(0, abs=1e-12)
    assert fit_gustafson(P, [gustafson(f, p) for p in P]).fraction == pytest.approx(f, abs=1e-12)


def test_a_fit_of_super_linear_speedups_is_a_negative_fraction_and_says_how_far_off_it_is():
    assert fit_amdahl([2, 4], [2.5, 6.0]).fraction < 0
    assert fit_amdahl(P, [1, 2, 3, 2, 1]).worst > 0.5


@pytest.mark.parametrize(
    ("p", "s"),
    [
        *(([1], [1]), ([2, 4], [2]), ([2], [0]), ([0.5, 2], [1, 2])),
        *(([2], [1.9]), ([1, 2], [1, 1.9]), ([2, 2], [1.8, 1.9])),  # a single P besides one
    ],
)
def test_a_fit_refuses_points_that_say_nothing(p, s):
    with pytest.raises(InputError):
        fit_amdahl(p, s)


def test_each_bound_counts_more_and_is_lower_and_needs_no_more_than_work():
    # 100 s of work as 40 and 60; the second waits 0, the first 15, both talk 5, the first does 10 more
    bounds = speedup_bounds(100, [40, 60], [15, 0], [5, 5], [10, 0])
    assert bounds == pytest.approx((100 / 60, 100 / 65, 100 / 70))
    assert speedup_bounds(8, [1] * 8) == (8, 8, 8)


def test_efficiency_is_the_ideal_time_over_the_measured_one():
    """An equal split on unequal ranks: slowest over mean; equal ranks: the plain efficiency."""
    speeds = np.array([1, 1, 0.5, 0.5])
    assert ideal_seconds(60, speeds) == 20
    seconds = (100 / 4) / speeds.min()
    assert heterogeneous_efficiency(100, speeds, seconds) == pytest.approx(0.5 / 0.75)
    assert heterogeneous_efficiency(100, [2.0] * 4, 15.0) == pytest.approx((100 / 2) / (4 * 15))


@pytest.mark.parametrize("speeds", [[], [1, 0], [1, np.inf]])
def test_speeds_must_be_positive(speeds):
    with pytest.raises(InputError, match="positive"):
        ideal_seconds(1, speeds)


def test_imbalance_is_max_over_mean_less_one_in_each_phase():
    busy = [[1.0, 2.0, 0.0], [3.0, 2.0, 0.0]]
    assert imbalance(busy) == pytest.approx([0.5, 0.0, 0.0])
    assert imbalance([1.0, 1.0, 4.0]) == pytest.approx(1.0)


def noisy(middle, n, seed, spread=0.01):
    return middle * (1 + spread * np.random.default_rng(seed).standard_normal(n))


def test_captured_gain_is_the_part_of_what_was_to_gain():
    found = captured_gain(noisy(20, 15, 1), noisy(13, 12, 2), 12.5)  # not as many of both
    assert found.value == pytest.approx((20 - 13) / (20 - 12.5), abs=0.03)
    assert found.interval.low < 7 / 7.5 < found.interval.high
    assert found.interval.high - found.interval.low < 0.1
    assert found.room == pytest.approx(7.5 / 20, abs=0.01)
    ideal = captured_gain(noisy(10, 15, 1), noisy(10, 15, 2), noisy(10, 15, 3))
    assert (ideal.nothing_to_capture, ideal.interval) == (True, None)


def test_the_interval_covers_the_truth_nineteen_times_in_twenty():
    truth, hits = (20 - 14) / (20 - 12), 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        equal, weighted = (t * (1 + 0.02 * rng.standard_normal(12)) for t in (20, 14))
        hits += truth in captured_gain(equal, weighted, 12.0).interval
    assert 185 <= hits <= 198


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
