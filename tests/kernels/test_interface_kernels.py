"""Messages of the interface and the rigid modes of a part, against twins and hand arithmetic."""

import numpy as np
import pytest

from fembench.kernels import reference
from fembench.kernels.backend import kernels

both = pytest.mark.parametrize("module", [kernels, reference], ids=["compiled", "twin"])


@both
def test_pack_gathers_dofs_or_whole_nodes(module):
    v = np.arange(12.0)
    dofs, nodes = np.empty(3), np.empty(6)
    module.Pack(v, np.array([11, 0, 4], np.int32), dofs).run()
    module.Pack(v, np.array([3, 1], np.int32), nodes).run()
    assert dofs.tolist() == [11, 0, 4]
    assert nodes.tolist() == [9, 10, 11, 3, 4, 5]
    module.Pack(v, np.empty(0, np.int32), np.empty(0)).run()  # nothing is shared


@both
@pytest.mark.parametrize("index", [[4], [-1]])
def test_an_index_outside_the_vector_is_refused(module, index):
    with pytest.raises(ValueError, match="outside the vector"):
        module.Pack(np.zeros(12), np.array(index, np.int32), np.zeros(3))


@both
def test_contributions_are_added_in_ascending_order_of_rank(module):
    """1 + 1e16 - 1e16 is 0 in one order and 1 in the other: the order is what is tested."""
    received = [np.array([1e16]), np.array([-1e16])]
    index = [np.array([1], np.int32)] * 2
    for n_below, own, expected in ((0, 1.0, 0.0), (2, 1.0, 1.0), (1, 1.0, 0.0)):
        v = np.array([7.0, own])
        module.NeighbourSum(v, 1, n_below, index, received).run()
        assert v.tolist() == [7.0, expected]


def test_the_neighbour_sum_is_that_of_the_twin():
    rng = np.random.default_rng(0)
    n, first = 300, 120
    indices = [np.sort(rng.choice(np.arange(40, 100), 25, replace=False)).astype(np.int32) for _ in range(4)]
    received = [rng.standard_normal(75) for _ in indices]
    results = []
    for module in (kernels, reference):
        v = np.random.default_rng(1).standard_normal(n)
        module.NeighbourSum(v, first, 2, indices, received).run()
        results.append(v)
    np.testing.assert_array_equal(*results)


def rigid(module, n=50, n_interface=20):
    """RigidModes of a part with two kinds of interface nodes, and its arrays."""
    rng = np.random.default_rng(2)
    x, r = rng.random((n + 4, 3)), rng.standard_normal(3 * n)
    arrays = {
        "x": x,
        "centre": x.mean(axis=0),
        "origin": np.array([0.2, -0.1, 0.4]),
        "weights": rng.random(n_interface).repeat(3),
        "kind": rng.integers(1, 3, n_interface).astype(np.int32),
        "coarse": rng.standard_normal((18, 24)),
        "moments": np.full(6, np.nan),
        "gathered": rng.standard_normal(24),
        "inverse": rng.random(3 * n),
        "r": r,
        "z": np.full(3 * n, np.nan),
    }
    return module.RigidModes(*arrays.values()), arrays


def test_rigid_modes_are_those_of_the_twin():
    (ours, a), (twin, b) = rigid(kernels), rigid(reference)
    for modes in (ours, twin):
        modes.restrict()
        modes.correct()
    np.testing.assert_allclose(a["moments"], b["moments"], rtol=1e-12)
    np.testing.assert_allclose(a["z"], b["z"], rtol=1e-12, atol=1e-12)


@both
def test_moments_are_force_and_torque(module):
    modes, a = rigid(module, n=2, n_interface=0)
    a["x"][:2] = a["centre"] + [[0, 0, 0], [1, 0, 0]]
    a["r"][:] = [1, 2, 3, 0, 5, 0]
    if module is reference:  # it keeps lever arms, not coordinates
        modes = module.RigidModes(*a.values())
    modes.restrict()
    np.testing.assert_allclose(a["moments"], [1, 7, 3, 0, 0, 5], atol=1e-15)


def scattered(module):
    """Three vectors of 4, 5, 6 nodes with values shared between them: a SharedSum, and the vectors."""
    rng = np.random.default_rng(3)
    vectors = [rng.standard_normal(3 * n) for n in (4, 5, 6)]
    vector = np.array([0, 1, 0, 1, 2, 2, 1], np.int32)
    node = np.array([3, 0, 2, 4, 1, 5, 2], np.int32)
    ends = np.array([0, 2, 5, 5, 7], np.int64)
    return module.SharedSum(vectors, vector, node, ends), vectors


def test_values_shared_between_vectors_become_their_sum_everywhere():
    (ours, a), (twin, b) = scattered(kernels), scattered(reference)
    before = [v.reshape(-1, 3).copy() for v in a]
    ours.run()
    twin.run()
    for u, v in zip(a, b):
        np.testing.assert_array_equal(u, v)
    total = before[0][2] + before[1][4] + before[2][1]
    for k, i in ((0, 2), (1, 4), (2, 1)):
        np.testing.assert_array_equal(a[k].reshape(-1, 3)[i], total)
    np.testing.assert_array_equal(a[0].reshape(-1, 3)[:2], before[0][:2])  # nobody shares these


@both
def test_a_shared_sum_is_made_in_the_order_given(module):
    """1 + 1e16 - 1e16 is 0 in one order and 1 in the other."""
    for order, expected in (((0, 1, 2), 0.0), ((1, 2, 0), 1.0)):
        vectors = [np.full(3, value) for value in (1.0, 1e16, -1e16)]
        ends = np.array([0, 3], np.int64)
        module.SharedSum(vectors, np.array(order, np.int32), np.zeros(3, np.int32), ends).run()
        assert [v.tolist() for v in vectors] == [[expected] * 3] * 3


@both
def test_values_are_gathered_from_several_vectors(module):
    vectors, buffer = [np.arange(6.0), np.arange(10.0, 19.0)], np.empty(9)
    module.Gather(vectors, np.array([1, 0, 1], np.int32), np.array([2, 1, 0], np.int32), buffer).run()
    assert buffer.tolist() == [16, 17, 18, 3, 4, 5, 10, 11, 12]
    module.Gather(vectors, np.zeros(0, np.int32), np.zeros(0, np.int32), np.empty(0)).run()


@both
def test_values_outside_their_vectors_are_refused(module):
    vectors = [np.zeros(6)]
    one, none = np.array([0], np.int32), np.array([1], np.int32)
    with pytest.raises(ValueError, match="outside its vector"):
        module.Gather(vectors, one, np.array([2], np.int32), np.zeros(3))
    with pytest.raises(ValueError, match="outside the list"):
        module.Gather(vectors, none, one, np.zeros(3))
    with pytest.raises(ValueError, match="ends"):
        module.SharedSum(vectors, one, one, np.array([0, 2], np.int64))
