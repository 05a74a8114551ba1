"""Which of several equal things is slow: hand arithmetic, simulated false alarms and findings."""

import numpy as np
import pytest
from scipy import stats as student

from fembench.stats.outliers import RELEVANT, joint_level, ratios_alike

ROUNDS = 8


def rates(rng, n, noise=0.02, spread=0.005):
    """(n, ROUNDS) rates of equal things, disturbed together by 10 % in each round."""
    own = spread * rng.standard_normal((n, 1))
    common = 0.1 * rng.standard_normal(ROUNDS)
    return np.exp(own + common + noise * rng.standard_normal((n, ROUNDS)))


def test_a_ratio_is_that_to_the_typical_thing_of_the_same_rounds():
    rounds = np.array([1.0, 3.0, 0.5, 2.0, 7.0, 1.0])
    found = ratios_alike(np.outer([10.0, 8.0, 10.0, 10.0, 5.0], rounds))
    assert found.ratio == pytest.approx([1.0, 0.8, 1.0, 1.0, 0.5])
    assert list(found.slow) == [False, True, False, False, True]
    assert np.all(found.low < found.ratio)
    assert np.all(found.ratio < found.high)  # identical samples do not make an interval without width


@pytest.mark.parametrize(
    ("speeds", "base"), [([10, 10, 8, 7], 10), ([12, 10, 3], 10), ([11, 10.8, 10.5], 10.8)]
)
def test_ratios_are_over_the_typical_thing_that_is_not_slow_although_half_of_them_are(speeds, base):
    found = ratios_alike(np.outer(speeds, [1.0, 3.0, 0.5, 2.0, 7.0, 1.0]))
    assert found.ratio == pytest.approx(np.divide(speeds, base))
    assert list(found.slow) == [speed < 9 for speed in speeds]


def test_a_small_deficit_is_no_finding_however_sure_it_is():
    factor = np.array([1 - 0.9 * RELEVANT, 1.0, 1.0, 1.0, 1.0, 1.0])
    assert not ratios_alike(np.outer(factor, np.ones(ROUNDS))).slow.any()


def test_the_most_different_thing_of_a_wide_spread_is_no_finding():
    """Speeds from 0.8 to 1.2 in equal steps: the slowest is as far from its neighbour as any."""
    wide = np.outer(np.linspace(0.8, 1.2, 9), np.ones(ROUNDS))
    assert ratios_alike(wide).high[0] < 1 - RELEVANT
    assert not ratios_alike(wide).slow.any()


def test_single_disturbed_rounds_neither_make_a_thing_slow_nor_hide_that_it_is():
    rng = np.random.default_rng(2)
    x = rates(rng, 8)
    x[1, 3] *= 0.2
    x[4] *= 0.85
    x[4, 0] *= 0.3
    assert list(np.flatnonzero(ratios_alike(x).slow)) == [4]


def test_a_thing_whose_rounds_agree_by_chance_is_no_surer_than_the_others():
    x = rates(np.random.default_rng(3), 8, noise=0.05)
    x[2] = 0.9 * np.median(x, axis=0)
    found = ratios_alike(x)
    widths = found.high / found.low
    assert widths[2] == pytest.approx(widths.min())
    assert widths[2] >= np.median(widths) / 1.2


@pytest.mark.parametrize(
    ("things", "rounds", "freedom"),
    [(3, 3, 2), (3, 8, 8), (8, 6, 15), (20, 3, 15)],  # 0.37 n (rounds - 1), but at least rounds - 1
)
def test_an_interval_has_the_degrees_of_freedom_of_all_things_together(things, rounds, freedom):
    found = ratios_alike(np.ones((things, rounds)), tests=1)
    # identical rates: the least scatter, and the median of `rounds` normal samples
    error = 1e-3 * 1.2533 / np.sqrt(rounds)
    assert np.log(found.high / found.ratio) == pytest.approx(student.t.ppf(0.975, freedom) * error)


def test_joint_intervals_of_one_test_have_the_level_asked_for():
    assert joint_level(1) == 0.95
    assert joint_level(10) ** 10 == pytest.approx(0.95)


@pytest.mark.parametrize("x", [np.ones((2, 8)), np.ones((5, 2)), np.zeros((5, 8)), np.full((5, 8), np.nan)])
def test_too_few_or_impossible_rates_are_refused(x):
    with pytest.raises(ValueError, match="expected"):
        ratios_alike(x)


def alarms(make, n, trials):
    rng = np.random.default_rng((n, trials))
    return sum(ratios_alike(make(rng, n), tests=3 * n).slow.any() for _ in range(trials)) / trials


def rarely_disturbed(rng, n):
    """One round of ten takes twice the time."""
    return rates(rng, n) * np.where(rng.random((n, ROUNDS)) < 0.1, 0.5, 1.0)


def nearly_relevant(rng, n):
    """The first thing lacks almost as much as counts."""
    x = rates(rng, n, spread=0.0)
    x[0] *= 1 - 0.99 * RELEVANT
    return x


@pytest.mark.parametrize("make", [rates, rarely_disturbed, nearly_relevant])
@pytest.mark.parametrize(("n", "trials"), [(3, 300), (8, 200), (100, 60)])
def test_equal_things_contain_a_slow_one_in_at_most_one_case_of_twenty(make, n, trials):
    assert alarms(make, n, trials) <= 0.05


@pytest.mark.parametrize(("n", "trials"), [(5, 60), (8, 60), (100, 20), (1000, 4)])
def test_a_thing_at_85_percent_is_found(n, trials):
    rng = np.random.default_rng(n)
    found = 0
    for _ in range(trials):
        x = rates(rng, n, noise=0.015)
        x[n // 2] *= 0.85
        found += list(np.flatnonzero(ratios_alike(x, tests=3 * n).slow)) == [n // 2]
    assert found / trials >= 0.9
