"""In which order a node of the interface adds up its values."""

import numpy as np

from fembench.device.device import ordered_sources

OWN = -1


def test_a_node_adds_its_values_in_ascending_order_of_rank():
    """Rank 1 of three: nodes 0 and 2 are shared with rank 0, nodes 2 and 1 with rank 2."""
    messages = [np.array([0, 2], np.int32), np.array([2, 1], np.int32)]
    start, sources = ordered_sources(3, messages, n_below=1)
    assert start.tolist() == [0, 2, 4, 7]
    assert sources.tolist() == [0, OWN, OWN, 3, 1, OWN, 2]


def test_the_lowest_rank_adds_its_own_value_first():
    start, sources = ordered_sources(2, [np.array([1, 0], np.int32)], n_below=0)
    assert start.tolist() == [0, 2, 4]
    assert sources.tolist() == [OWN, 1, OWN, 0]
