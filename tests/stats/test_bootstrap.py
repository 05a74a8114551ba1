"""Bootstrap intervals: coverage on known distributions."""

import numpy as np
import pytest

from fembench.stats import bootstrap
from fembench.stats.bootstrap import bootstrap_interval, mean_rows, percentile_interval, replicates


def test_the_interval_of_a_mean_covers_about_as_often_as_it_says():
    rng = np.random.default_rng(5)
    rows = rng.normal(3.0, 1.0, size=(600, 40))
    intervals = [bootstrap_interval(row, rng, statistic=mean_rows, resamples=400) for row in rows]
    hits = sum(3.0 in interval for interval in intervals)
    assert 0.90 <= hits / 600 <= 0.98


def test_the_interval_of_a_median_covers_about_as_often_as_it_says():
    rng = np.random.default_rng(6)
    rows = rng.exponential(size=(600, 41))
    hits = sum(np.log(2) in bootstrap_interval(row, rng, resamples=400) for row in rows)
    assert 0.90 <= hits / 600 <= 0.985


def test_the_spread_of_replicated_means_is_the_standard_error():
    x = np.random.default_rng(7).normal(0, 2, 400)
    values = replicates(x, np.random.default_rng(8), statistic=mean_rows, resamples=4000)
    assert values.std() == pytest.approx(x.std() / 20, rel=0.05)


def test_the_same_seed_gives_the_same_interval():
    x = np.arange(30.0)
    first, second, other = (
        bootstrap_interval(x, np.random.default_rng(s), statistic=mean_rows) for s in (1, 1, 2)
    )
    assert first == second
    assert first != other


def test_a_large_sample_is_drawn_in_pieces_and_gives_as_many_values(monkeypatch):
    monkeypatch.setattr(bootstrap, "CHUNK", 64)
    assert replicates(np.arange(30.0), np.random.default_rng(0), resamples=7).shape == (7,)
    assert replicates(np.arange(100.0), np.random.default_rng(0), resamples=3).shape == (3,)


@pytest.mark.parametrize("samples", [[], [1.0]])
def test_one_sample_has_no_interval(samples):
    assert bootstrap_interval(samples, np.random.default_rng(0)) is None


def test_equal_samples_have_an_interval_of_no_width():
    assert bootstrap_interval([2.0, 2.0, 2.0], np.random.default_rng(0))[:2] == (2.0, 2.0)


def test_the_percentile_interval_cuts_half_of_the_rest_on_each_side():
    assert percentile_interval(np.arange(101.0), 0.9)[:2] == pytest.approx((5.0, 95.0))
