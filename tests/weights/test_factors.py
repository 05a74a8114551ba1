import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.weights.factors import factors

SPEEDS, COSTS = np.array([1.0, 1.0, 0.5]), np.array([1.0, 3.0])


def times(counts):
    return counts @ COSTS / SPEEDS


def test_other_partitions_tell_a_slow_rank_from_costly_cells():
    counts = np.array([[[90, 10], [50, 50], [40, 60]], [[50, 50], [80, 20], [30, 70]]], float)
    found = factors(times(counts), counts)
    assert found.speeds == pytest.approx(SPEEDS / SPEEDS.mean())
    assert found.costs == pytest.approx(COSTS)
    assert found.residual == pytest.approx(0, abs=1e-9)


def test_with_noise_they_are_found_within_it():
    noise = np.random.default_rng(0)
    counts = noise.uniform(10, 100, (12, 3, 2))
    found = factors(times(counts) * (1 + 0.01 * noise.standard_normal((12, 3))), counts)
    assert found.speeds == pytest.approx(SPEEDS / SPEEDS.mean(), rel=0.02)
    assert found.costs == pytest.approx(COSTS, rel=0.03)


def test_a_rank_that_always_has_the_costly_cells_cannot_be_told_from_a_slow_one():
    counts = np.array([[[100, 0], [100, 0], [0, 100]], [[80, 0], [120, 0], [0, 90]]], float)
    assert factors(times(counts), counts) is None


def test_one_run_with_one_mix_everywhere_tells_nothing_of_cells():
    counts = np.array([[[50, 50], [50, 50], [50, 50]]], float)
    assert factors(times(counts), counts) is None


def test_one_kind_of_cell_gives_the_speeds():
    counts = np.array([[[100], [100], [100]]], float)
    found = factors([[1.0, 1.0, 2.0]], counts)
    assert found.speeds == pytest.approx(SPEEDS / SPEEDS.mean())
    assert found.costs.tolist() == [1.0]


def test_counts_of_another_shape_are_refused():
    with pytest.raises(InputError, match="runs, ranks, kinds"):
        factors([[1.0, 2.0]], [[[1], [1], [1]]])


@pytest.mark.parametrize(("variation", "noise"), [(0.005, 0.003), (0.1, 0.02)])
def test_mixes_that_hardly_differ_tell_nothing_within_noise(variation, noise):
    mix = np.array([[100.0, 20.0], [60.0, 60.0], [20.0, 100.0]])
    for seed in range(10):
        rng = np.random.default_rng(seed)
        counts = mix * (1 + variation * rng.standard_normal((6, 3, 2)))
        assert factors(times(counts) * (1 + noise * rng.standard_normal((6, 3))), counts) is None
