"""Coverage as a test: how often it fails good intervals, and whether it can fail bad ones."""

import sys
from pathlib import Path

import numpy as np
import pytest

from fembench.model.forecast import half_width

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from calibrated import WIDEST, count_region, covers, effective, not_too_wide

CELLS, RUNS, SESSIONS = 24, 3, 500


@pytest.mark.parametrize(
    ("n", "region"),
    [  # quantiles of the binomial distribution (alike -> 0): scipy.stats.binom(n, 0.9).ppf([0.025, 0.975])
        (24, (18, 24)),
        (48, (39, 47)),
        (100, (84, 95)),
    ],
)
def test_the_region_of_independent_cells_is_binomial(n, region):
    assert count_region(n, alike=1e-7) == region


def test_cells_of_one_session_count_as_fewer():
    assert effective(24, 0.0) == 24
    assert effective(24, 1.0) == pytest.approx(1.0)
    assert effective(24) == pytest.approx(11.2, abs=0.05)
    assert count_region(24) == (16, 24)


def test_the_region_has_the_probability_that_it_claims():
    rng = np.random.default_rng(0)
    rho, n = 0.05, 24
    inside = rng.beta(0.9 * (1 / rho - 1), 0.1 * (1 / rho - 1), 20_000)
    counts = rng.binomial(n, inside)
    least, most = count_region(n, alike=rho)
    assert np.mean(counts < least) <= 0.025
    assert np.mean(counts < least + 1) > 0.025
    assert np.mean(counts > most) <= 0.025


def sessions(shared):
    """(half-width, p90 of |error|, errors of runs) of sessions; `shared`: the part of the variance that all
    cells of a pass have in common. Training: two passes over 24 configurations; held out: one session."""
    rng = np.random.default_rng(1)
    own = ((1 - shared) / 2) ** 0.5
    for _ in range(SESSIONS):
        drift = shared**0.5 * rng.standard_normal(2)
        of_cell = own * rng.standard_normal((CELLS, 1))
        training = of_cell + own * rng.standard_normal((CELLS, 2)) + drift
        errors = own * rng.standard_normal((CELLS, 1)) + own * rng.standard_normal((CELLS, RUNS))
        errors += shared**0.5 * rng.standard_normal()
        p90 = np.quantile(np.abs(np.median(errors, axis=1)), 0.9)
        yield half_width(training.tolist()), p90, errors


def failing(shared, wider):
    """Fraction of sessions that fail (coverage, width) if intervals are `wider` than they should be."""
    found = [
        (not covers(np.mean(np.abs(e) <= wider * w), CELLS), not not_too_wide(wider * w, p90))
        for w, p90, e in sessions(shared)
    ]
    return np.mean(found, axis=0)


@pytest.mark.parametrize("shared", [0.0, 0.3])
def test_good_intervals_rarely_fail(shared):
    coverage, width = failing(shared, 1.0)
    assert coverage <= 0.05
    assert width <= 0.03


def test_intervals_much_too_narrow_or_three_times_too_wide_fail():
    assert failing(0.0, 0.4)[0] >= 0.8
    assert failing(0.2, 3.0)[1] >= 0.9


def test_the_two_sessions_that_led_to_this_test_fail():
    """58 % of 24 cells inside; and all of 22 inside intervals of 12.7 % while errors were 2.6 %."""
    assert not covers(0.583, 24)
    assert covers(1.0, 22)
    assert not not_too_wide(0.127, 0.026)
    assert not_too_wide(WIDEST * 0.026, 0.026)
