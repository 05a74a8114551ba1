"""Messages of the interface and the rigid modes of a part, against hand arithmetic."""

import numpy as np
import pytest

from fembench.kernels.backend import kernels


def test_pack_gathers_dofs_or_whole_nodes():
    v = np.arange(12.0)
    dofs, nodes = np.empty(3), np.empty(6)
    kernels.Pack(v, np.array([11, 0, 4], np.int32), dofs).run()
    kernels.Pack(v, np.array([3, 1], np.int32), nodes).run()
    assert dofs.tolist() == [11, 0, 4]
    assert nodes.tolist() == [9, 10, 11, 3, 4, 5]
    kernels.Pack(v, np.empty(0, np.int32), np.empty(0)).run()  # nothing is shared


@pytest.mark.parametrize("index", [[4], [-1]])
def test_an_index_outside_the_vector_is_refused(index):
    with pytest.raises(ValueError, match="outside the vector"):
        kernels.Pack(np.zeros(12), np.array(index, np.int32), np.zeros(3))


def test_contributions_are_added_in_ascending_order_of_rank():
    """1 + 1e16 - 1e16 is 0 in one order and 1 in the other: the order is what is tested."""
    received = [np.array([1e16]), np.array([-1e16])]
    index = [np.array([1], np.int32)] * 2
    for n_below, own, expected in ((0, 1.0, 0.0), (2, 1.0, 1.0), (1, 1.0, 0.0)):
        v = np.array([7.0, own])
        kernels.NeighbourSum(v, 1, n_below, index, received).run()
        assert v.tolist() == [7.0, expected]


def test_whole_nodes_are_added_in_ascending_order_of_rank():
    rng = np.random.default_rng(0)
    n, first = 300, 120
    indices = [np.sort(rng.choice(np.arange(40, 100), 25, replace=False)).astype(np.int32) for _ in range(4)]
    received = [rng.standard_normal(75) for _ in indices]
    v = rng.standard_normal(n)
    expected, own = v.copy(), v[first:].copy()
    expected[first:] = 0
    for k, (index, buffer) in enumerate(zip(indices, received)):
        if k == 2:
            expected[first:] += own
        expected.reshape(-1, 3)[index] += buffer.reshape(-1, 3)
    kernels.NeighbourSum(v, first, 2, indices, received).run()
    np.testing.assert_array_equal(v, expected)


def rigid(n=50, n_interface=20):
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
    return kernels.RigidModes(*arrays.values()), arrays


def test_the_motion_of_each_kind_of_node_is_added_to_the_scaled_residual():
    modes, a = rigid()
    modes.correct()
    kind = np.concatenate([np.zeros(30, int), a["kind"]])
    motion = (a["coarse"] @ a["gathered"]).reshape(-1, 6)[kind]
    u = motion[:, :3] + np.cross(motion[:, 3:], a["x"][:50] - a["origin"])
    np.testing.assert_allclose(a["z"], a["inverse"] * a["r"] + u.reshape(-1), rtol=1e-12, atol=1e-12)


def test_nodes_of_the_interface_count_by_their_weights_in_the_moments():
    modes, a = rigid()
    modes.restrict()
    f = (a["r"] * np.concatenate([np.ones(90), a["weights"]])).reshape(-1, 3)
    expected = [*f.sum(axis=0), *np.cross(a["x"][:50] - a["centre"], f).sum(axis=0)]
    np.testing.assert_allclose(a["moments"], expected, rtol=1e-12)


def scattered():
    """Three vectors of 4, 5, 6 nodes with values shared between them: a SharedSum, and the vectors."""
    rng = np.random.default_rng(3)
    vectors = [rng.standard_normal(3 * n) for n in (4, 5, 6)]
    vector = np.array([0, 1, 0, 1, 2, 2, 1], np.int32)
    node = np.array([3, 0, 2, 4, 1, 5, 2], np.int32)
    ends = np.array([0, 2, 5, 5, 7], np.int64)
    return kernels.SharedSum(vectors, vector, node, ends), vectors


def test_values_shared_between_vectors_become_their_sum_everywhere():
    shared, a = scattered()
    before = [v.reshape(-1, 3).copy() for v in a]
    shared.run()
    total = before[0][2] + before[1][4] + before[2][1]
    for k, i in ((0, 2), (1, 4), (2, 1)):
        np.testing.assert_array_equal(a[k].reshape(-1, 3)[i], total)
    np.testing.assert_array_equal(a[0].reshape(-1, 3)[:2], before[0][:2])  # nobody shares these


def test_a_shared_sum_is_made_in_the_order_given():
    """1 + 1e16 - 1e16 is 0 in one order and 1 in the other."""
    for order, expected in (((0, 1, 2), 0.0), ((1, 2, 0), 1.0)):
        vectors = [np.full(3, value) for value in (1.0, 1e16, -1e16)]
        ends = np.array([0, 3], np.int64)
        kernels.SharedSum(vectors, np.array(order, np.int32), np.zeros(3, np.int32), ends).run()
        assert [v.tolist() for v in vectors] == [[expected] * 3] * 3


def test_values_are_gathered_from_several_vectors():
    vectors, buffer = [np.arange(6.0), np.arange(10.0, 19.0)], np.empty(9)
    kernels.Gather(vectors, np.array([1, 0, 1], np.int32), np.array([2, 1, 0], np.int32), buffer).run()
    assert buffer.tolist() == [16, 17, 18, 3, 4, 5, 10, 11, 12]
    kernels.Gather(vectors, np.zeros(0, np.int32), np.zeros(0, np.int32), np.empty(0)).run()


def test_values_outside_their_vectors_are_refused():
    vectors = [np.zeros(6)]
    one, none = np.array([0], np.int32), np.array([1], np.int32)
    with pytest.raises(ValueError, match="outside its vector"):
        kernels.Gather(vectors, one, np.array([2], np.int32), np.zeros(3))
    with pytest.raises(ValueError, match="outside the list"):
        kernels.Gather(vectors, none, one, np.zeros(3))
    with pytest.raises(ValueError, match="ends"):
        kernels.SharedSum(vectors, one, one, np.array([0, 2], np.int64))
