"""The law that Extra-P would fit, held against laws that are known."""

import itertools

import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.model.pmnf import fit_law
from fembench.model.score import BASELINES, Grid

RUNS = list(itertools.product((1e4, 1e5, 1e6, 1e7), (2, 4, 8, 16)))


def law_of(cost, noise=0.0):
    rng = np.random.default_rng(0)
    times = [cost(n, p) / p * rng.lognormal(0, noise) for n, p in RUNS]
    return fit_law([n for n, _ in RUNS], [p for _, p in RUNS], times)


@pytest.mark.parametrize(
    ("cost", "n", "ranks"),
    [
        (lambda n, p: 1e-9 * n, (1, 0), (0, 0)),
        (lambda n, p: 5e-4 + 1e-9 * n * np.log2(p), (1, 0), (0, 1)),
        (lambda n, p: 2e-5 + 1e-8 * n ** (2 / 3) * p**0.5, (2 / 3, 0), (0.5, 0)),
    ],
)
def test_a_law_of_the_form_is_found_and_carries_beyond_its_runs(cost, n, ranks):
    law = law_of(cost)
    assert (law.n, law.ranks) == (n, ranks)
    for size, p in ((1e8, 64), (3e3, 3)):
        assert law.seconds(size, p) == pytest.approx(cost(size, p) / p, rel=1e-6)


def test_noise_does_not_make_it_wild():
    law = law_of(lambda n, p: 1e-4 + 1e-9 * n * (1 + 0.1 * np.log2(p)), noise=0.05)
    assert law.seconds(1e7, 32) == pytest.approx((1e-4 + 1e-2 * 1.5) / 32, rel=0.3)


def test_costs_that_do_not_change_are_a_constant_and_nothing_is_negative():
    law = law_of(lambda n, p: 3.0)
    assert law.seconds(1e5, 8) == pytest.approx(3 / 8)
    falling = law_of(lambda n, p: 1 / n)
    assert falling.constant >= 0
    assert falling.factor >= 0


def test_too_few_runs_are_refused():
    with pytest.raises(InputError, match="2 runs"):
        fit_law([1, 2], [1, 2], [1.0, 2.0])


def test_it_stands_among_the_baselines():
    grid = [Grid(p, n, [1.0] * p, 0.0, 0.0, 1e-9 * n / p) for n, p in RUNS]
    assert BASELINES["Extra-P's form, fitted"](grid, grid) == pytest.approx([g.measured for g in grid])
