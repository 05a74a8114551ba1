"""Comparisons: when one may say faster."""

import math

import numpy as np
import pytest

from fembench.stats.compare import (
    compare_paired,
    compare_unpaired,
    median_ratio,
    noise_of_series,
)


def test_disturbances_that_hit_both_of_a_pair_cancel():
    rng = np.random.default_rng(0)
    disturbance = rng.exponential(1.0, 20) + 1
    b = 2.0 * disturbance
    a = 1.9 * disturbance
    result = compare_paired(a, b, noise=0.01)
    assert result.ratio == pytest.approx(0.95)
    assert result.interval[:2] == pytest.approx((0.95, 0.95))
    assert result.verdict == "faster"
    unpaired = compare_unpaired(a, b, noise=0.01)
    assert unpaired.verdict == "no difference shown"  # their spread hides 5 %


def test_a_gain_within_the_noise_of_the_session_is_no_gain():
    a, b = [0.98] * 10, [1.0] * 10
    assert compare_paired(a, b, noise=0.01).verdict == "faster"
    assert compare_paired(a, b, noise=0.02001).verdict == "no difference shown"
    assert compare_paired(a, b).verdict == "no difference shown"  # noise unknown
    assert compare_paired(b, a, noise=0.01).verdict == "slower"


def test_an_interval_that_holds_1_shows_no_difference():
    ratios = [0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 1.1, 1.1, 1.1]
    result = compare_paired(ratios, [1.0] * 10, noise=0.0)
    assert result.ratio == pytest.approx(0.8)
    assert result.verdict == "no difference shown"


def test_one_sample_compares_without_an_interval():
    one = compare_paired([2.0], [1.0], noise=0.0)
    assert (one.ratio, one.interval, one.verdict) == (2.0, None, "too few samples")
    assert compare_unpaired([2.0], [1.0, 1.0]).verdict == "too few samples"
    assert math.isnan(compare_paired([], []).ratio)


def test_a_ratio_is_the_inverse_of_the_inverse_ratio_whatever_the_noise():
    assert median_ratio([1.0, 4.0], [2.0, 2.0]) == pytest.approx(1.0)
    a, b = np.random.default_rng(2).lognormal(0, 1, (2, 2000, 6))
    ratios = [compare_paired(x, y).ratio for x, y in zip(a, b)]
    assert np.median(ratios) == pytest.approx(1.0, abs=0.03)
    assert np.mean(np.log(ratios)) == pytest.approx(0.0, abs=0.03)  # the mean of two middle ratios: 0.07
    assert compare_paired(a[0], b[0]).ratio == pytest.approx(1 / compare_paired(b[0], a[0]).ratio)


def test_pairs_must_be_pairs():
    with pytest.raises(ValueError, match="2 and 3"):
        compare_paired([1, 1], [1, 1, 1])


def test_noise_is_how_far_neighbours_of_the_same_thing_lie_apart():
    assert noise_of_series([1.0, 1.1, 1.0, 1.1]) == pytest.approx(1 / 11)
    assert noise_of_series([1.0]) == math.inf


@pytest.mark.parametrize("wrong", [0.0, -1.0])
def test_times_that_are_not_positive_are_refused(wrong):
    good, bad = [1.0] * 6, [1.0] * 5 + [wrong]
    for pair in ((good, bad), (bad, good)):
        with pytest.raises(ValueError, match="above zero"):
            compare_paired(*pair)
    with pytest.raises(ValueError, match="above zero"):
        noise_of_series(bad)


def test_a_missing_time_leaves_no_interval_of_pairs():
    found = compare_paired([1.0] * 8, [1.0] * 7 + [math.nan], noise=0.0)
    assert found.interval is None
    assert math.isnan(found.ratio)


def test_samples_that_are_no_pairs_have_none_in_favour():
    slower = compare_unpaired([2.0, 2.1, 2.2], [1.0, 1.1, 1.2], noise=0.1)
    assert (slower.in_favour, slower.verdict) == (0, "slower")
    assert compare_unpaired([1.0, 1.1, 1.2], [2.0, 2.1, 2.2], noise=0.1).verdict == "faster"
    assert compare_paired([2.0, 2.1, 2.2], [1.0, 2.2, 1.2]).in_favour == 2
