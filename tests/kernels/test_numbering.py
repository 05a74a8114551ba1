"""Numbering by place."""

import numpy as np
import pytest
from kernel_samples import SAMPLES, grid

from fembench.ranks.piece import rows_in_space


@pytest.mark.parametrize("s", SAMPLES.values(), ids=SAMPLES.keys())
def test_every_node_stays_within_interior_or_interface(s):
    position = rows_in_space(s.x, s.n_interior, s.n_active)
    assert sorted(position[: s.n_interior]) == list(range(s.n_interior))
    assert sorted(position[s.n_interior :]) == list(range(s.n_interior, s.n_active))


def test_a_shuffled_box_gets_the_bandwidth_of_its_smallest_cross_section():
    x, hexes = grid(5, 24, 4)
    shuffled = np.random.default_rng(0).permutation(len(x))
    place = np.empty_like(x)
    place[shuffled] = x
    cells = rows_in_space(place, len(x), len(x))[shuffled[hexes]]
    assert (cells.max(axis=1) - cells.min(axis=1)).max() == 5 * 6 + 5 + 1


def test_a_flat_set_of_nodes_and_a_single_one_are_numbered_too():
    x = np.random.default_rng(1).random((30, 3)) * [1, 1, 0]
    assert sorted(rows_in_space(x, 29, 30)) == list(range(30))
    assert rows_in_space(x[:1], 1, 1).tolist() == [0]
