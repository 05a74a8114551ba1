import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.weights.scaling import (
    amdahl,
    fit_amdahl,
    fit_gustafson,
    growth_exponents,
    gustafson,
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


def test_a_fit_of_super_linear_speedups_is_a_negative_fraction():
    assert fit_amdahl([2, 4], [2.5, 6.0]).fraction < 0


def test_a_fit_says_how_far_off_it_is():
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


def test_each_bound_counts_more_and_is_lower():
    # 100 s of work as 40 and 60; the second waits 0, the first 15, both talk 5, the first does 10 more
    bounds = speedup_bounds(100, [40, 60], [15, 0], [5, 5], [10, 0])
    assert bounds == pytest.approx((100 / 60, 100 / 65, 100 / 70))


def test_the_bounds_need_no_more_than_work():
    assert speedup_bounds(8, [1] * 8) == (8, 8, 8)


def test_growth_exponents_are_those_of_powers():
    n = np.array([10, 40, 100])
    assert growth_exponents(n, 3 * n**2.4) == pytest.approx([2.4, 2.4])
