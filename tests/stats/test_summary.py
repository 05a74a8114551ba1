"""Median, its interval, drift: against binomial tables and known distributions."""

import math

import numpy as np
import pytest

from fembench.stats.summary import (
    Interval,
    drift,
    fewest_for,
    median,
    median_interval,
    middle,
    order_statistics,
    quartile_spread,
)


def test_the_median_of_an_even_number_lies_between_the_middle_two():
    assert median([4.0, 1.0, 3.0, 2.0]) == 2.5
    assert median([7.0]) == 7.0
    assert math.isnan(median([]))


# n -> k of the 95 % interval (Conover, Practical Nonparametric Statistics; binomial table)
@pytest.mark.parametrize(
    ("n", "k"), [(1, 0), (5, 0), (6, 1), (8, 1), (9, 2), (10, 2), (12, 3), (20, 6), (50, 18), (100, 40)]
)
def test_the_order_statistics_are_those_of_the_table(n, k):
    assert order_statistics(n)[0] == k


def test_the_coverage_is_the_binomial_one():
    assert order_statistics(6) == (1, pytest.approx(1 - 2 / 64))
    tail = sum(math.comb(10, j) for j in range(2)) / 2**10
    assert order_statistics(10) == (2, pytest.approx(1 - 2 * tail))
    assert order_statistics(10, 0.5)[0] == 4


def test_many_samples_agree_with_the_normal_approximation():
    n = 20_000
    k, covered = order_statistics(n)
    assert k == pytest.approx(n / 2 - 1.96 * math.sqrt(n) / 2, abs=2)
    assert 0.95 <= covered < 0.952


def test_fewer_than_six_samples_and_missing_ones_bound_no_median():
    assert median_interval([1.0, 2.0, 3.0, 4.0, 5.0]) is None
    assert median_interval([3.0, 1.0, 2.0, 6.0, 5.0, 4.0]) == (1.0, 6.0, pytest.approx(0.96875))
    assert median_interval([]) is None
    assert median_interval([1, 2, 3, 4, 5, 6, math.nan]) is None
    assert median_interval([math.nan] + [1.0] * 20) is None


def test_the_spread_is_the_quartile_range_over_the_median():
    assert quartile_spread([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2 / 3)
    assert quartile_spread([2.0]) == 0.0
    assert math.isnan(quartile_spread([]))
    assert math.isnan(quartile_spread([0.0, 0.0]))


def test_drift_compares_the_last_third_with_the_first():
    assert drift([1, 1, 1, 9, 9, 9, 1.1, 1.1, 1.1]) == pytest.approx(0.1)
    assert drift([2.0, 5.0, 1.0]) == pytest.approx(-0.5)
    assert drift([4.0, 4.0, 9.0, 9.0, 9.0, 2.0, 2.0]) == pytest.approx(-0.5)  # 7 samples: thirds of two


@pytest.mark.parametrize("samples", [[], [1.0], [1.0, 2.0], [0.0, 1.0, 2.0]])
def test_drift_is_not_a_number_where_it_cannot_be_judged(samples):
    assert math.isnan(drift(samples))


@pytest.mark.parametrize("level", [0, 1, 1.5, math.nan])
def test_no_number_of_samples_suffices_for_a_level_that_is_none(level):
    with pytest.raises(ValueError, match="between 0 and 1"):
        fewest_for(level)


@pytest.mark.parametrize(("level", "fewest"), [(0.5, 2), (0.9, 5), (0.95, 6), (0.99, 8), (0.999, 11)])
def test_the_extremes_of_so_many_samples_just_bound_the_median(level, fewest):
    assert fewest_for(level) == fewest  # 1 - 2 / 2^n >= level
    assert order_statistics(fewest, level)[0] == 1
    assert order_statistics(fewest - 1, level)[0] == 0


def test_an_interval_contains_its_ends():
    assert 1.0 in Interval(1.0, 2.0, 0.95)
    assert 2.1 not in Interval(1.0, 2.0, 0.95)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 11])
def test_medians_are_those_of_numpy_to_the_last_bit(n):
    values = np.random.default_rng(n).random((n, 4))
    assert (middle(values) == np.median(values, axis=0)).all()
    assert median(values[:, 0]) == np.median(values[:, 0])
    assert math.isnan(median([*values[:, 0], math.nan]))
