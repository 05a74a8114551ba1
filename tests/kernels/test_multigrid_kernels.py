"""The kernels of multigrid, against dense algebra."""

import numpy as np
import pytest
import reference

from fembench.kernels.backend import kernels

N, N_COARSE = 40, 11


def dense(indptr, rows, columns, values):
    """(3 n, 3 n) of a matrix that stores every pair of nodes once."""
    n = len(rows)
    A = np.zeros((n, 3, n, 3))
    row = np.repeat(rows, np.diff(indptr))
    A[columns, :, row] = np.asarray(values).transpose(0, 2, 1)
    A[row, :, columns] = values
    return A.reshape(3 * n, 3 * n)


def matrix(rng, n_interior):
    """A random symmetric matrix of nodes, stored as a pattern of cells says."""
    cells = np.ascontiguousarray(
        np.sort(rng.permuted(np.tile(np.arange(N), (60, 1)), axis=1)[:, :4]), np.int32
    )
    indptr, rows, columns = kernels.pattern(cells, n_interior, N, True)
    values = kernels.empty((len(columns), 3, 3))
    values[:] = rng.standard_normal(values.shape)
    values[indptr[:-1]] += values[indptr[:-1]].transpose(0, 2, 1)
    return indptr, rows, columns, values


def parents(rng):
    """(parent, weight) (N, 8): two to eight different parents per node, zero weights last."""
    parent = rng.permuted(np.tile(np.arange(N_COARSE), (N, 1)), axis=1)[:, :8].astype(np.int32)
    weight = rng.uniform(0.1, 1.0, (N, 8)) * (np.arange(8) < rng.integers(2, 9, (N, 1)))
    return np.ascontiguousarray(parent), weight.astype(np.float32)


def prolongation(parent, weight):
    P = np.zeros((N, N_COARSE))
    np.add.at(P, (np.arange(N)[:, None], parent), weight)
    return np.kron(P, np.eye(3))


@pytest.mark.parametrize(("n_interior", "n_coarse_interior"), [(N, N_COARSE), (25, 7), (0, 0)])
def test_the_galerkin_product_is_that_of_dense_matrices(n_interior, n_coarse_interior):
    rng = np.random.default_rng(n_interior)
    stored = matrix(rng, n_interior)
    fixed = rng.random(3 * N) < 0.1
    A = dense(*stored)
    A[np.flatnonzero(fixed), np.flatnonzero(fixed)] = 0.0
    P = prolongation(*(found := parents(rng)))
    coarse = kernels.galerkin(*stored, fixed, *found, N_COARSE, n_coarse_interior)
    np.testing.assert_allclose(dense(*coarse), P.T @ A @ P, atol=1e-12)


def test_the_galerkin_product_stores_every_pair_once_the_own_node_of_a_row_first():
    rng = np.random.default_rng(3)
    stored, (parent, weight) = matrix(rng, 25), parents(rng)
    indptr, rows, columns, _ = kernels.galerkin(*stored, np.zeros(3 * N, bool), parent, weight, N_COARSE, 7)
    assert rows.tolist() == [*range(7, N_COARSE), *range(7)]
    there = dense(*stored[:3], np.ones((len(stored[2]), 3, 3)))[::3, ::3] > 0
    touched = prolongation(parent, weight)[::3, ::3] > 0
    alike = (touched.T @ there @ touched) | np.eye(N_COARSE, dtype=bool)
    place = np.argsort(rows)
    for k, row in enumerate(rows):
        found = columns[indptr[k] : indptr[k + 1]].tolist()
        expected = [j for j in range(N_COARSE) if alike[row, j] and place[j] > k]
        assert found == [row, *expected]


def test_a_coarse_matrix_larger_than_was_expected_finds_room():
    rng = np.random.default_rng(5)
    n = 600
    indptr = 2 * np.arange(n + 1)
    columns = np.column_stack((np.arange(n), (np.arange(n) + 1) % n)).astype(np.int32)
    columns[-1] = n - 1, 0
    values = kernels.empty((2 * n, 3, 3))
    values[:] = rng.standard_normal(values.shape)
    values[0::2] += values[0::2].transpose(0, 2, 1)
    parent = rng.permuted(np.tile(np.arange(300), (n, 1)), axis=1)[:, :8].astype(np.int32)  # far apart
    weight = rng.uniform(0.1, 1.0, (n, 8)).astype(np.float32)
    stored = (indptr.astype(np.int64), np.arange(n, dtype=np.int32), columns.reshape(-1), values)
    coarse = kernels.galerkin(*stored, np.zeros(3 * n, bool), np.ascontiguousarray(parent), weight, 300, 300)
    P = np.zeros((n, 300))
    np.add.at(P, (np.arange(n)[:, None], parent), weight)
    P = np.kron(P, np.eye(3))
    assert len(coarse[2]) > 16 * 300 + 16
    np.testing.assert_allclose(dense(*coarse), P.T @ dense(*stored) @ P, atol=1e-10)


def test_restriction_is_the_transpose_of_prolongation_weighted_on_the_interface():
    rng = np.random.default_rng(7)
    parent, weight = parents(rng)
    P = prolongation(parent, weight)
    share, r, coarse = (
        rng.uniform(0.2, 1.0, 30),
        rng.standard_normal(3 * N),
        rng.standard_normal(3 * N_COARSE),
    )
    residual, fine = np.empty(3 * N_COARSE), np.empty(3 * N)
    kernels.Transfer(parent, weight, share, r, residual, fine).restrict()
    np.testing.assert_allclose(residual, P.T @ (r * np.r_[np.ones(3 * N - 30), share]), atol=1e-13)
    kernels.Transfer(parent, weight, share, r, coarse, fine).prolong()
    np.testing.assert_allclose(fine, P @ coarse, atol=1e-13)


def test_a_step_with_blocks_is_that_of_the_polynomial():
    rng = np.random.default_rng(9)
    z, r, d, q = (rng.standard_normal(3 * N) for _ in range(4))
    inverse = rng.standard_normal((N, 6)).astype(np.float32)
    full = inverse[:, [0, 3, 5, 3, 1, 4, 5, 4, 2]].reshape(N, 3, 3)
    step = kernels.Chebyshev(z, r, d, q, inverse)
    expected_d = 0.3 * d + 0.7 * np.einsum("nij,nj->ni", full, (r - q).reshape(N, 3)).reshape(-1)
    expected_z, expected_r = z + expected_d, r - q
    step.run(0.3, 0.7)
    for found, expected in ((d, expected_d), (z, expected_z), (r, expected_r)):
        np.testing.assert_allclose(found, expected, atol=1e-13)
    step.start(2.0)
    np.testing.assert_allclose(
        d, 2.0 * np.einsum("nij,nj->ni", full, r.reshape(N, 3)).reshape(-1), atol=1e-13
    )
    np.testing.assert_array_equal(z, d)


def test_the_first_step_with_a_diagonal_scales_the_residual():
    rng = np.random.default_rng(11)
    z, r, d, q, inverse = (rng.standard_normal(3 * N) for _ in range(5))
    kernels.Chebyshev(z, r, d, q, inverse).start(0.7)
    np.testing.assert_allclose(d, 0.7 * inverse * r, rtol=1e-14)
    np.testing.assert_array_equal(z, d)


def test_a_parent_outside_the_coarse_grid_is_refused():
    rng = np.random.default_rng(1)
    parent, weight = parents(rng)
    with pytest.raises(ValueError, match=r"parent: an index outside 0\.\.9"):
        kernels.Transfer(parent, weight, np.empty(0), np.empty(3 * N), np.empty(30), np.empty(3 * N))
    with pytest.raises(ValueError, match=r"parent: an index outside 0\.\.9"):
        kernels.galerkin(*matrix(rng, N), np.zeros(3 * N, bool), parent, weight, 10, 10)


@pytest.mark.parametrize("kinds", [1, 3])
def test_connected_children_of_a_parent_are_those_of_the_plain_twin(kinds):
    rng = np.random.default_rng(3)
    indptr, rows, columns, _ = matrix(rng, 25)
    parent, weight = parents(rng)
    kind, name = rng.integers(0, kinds, N).astype(np.uint8), rng.permutation(N)
    arguments = (indptr, rows, columns, kind, name, parent.astype(np.int64), weight)
    (root, least), (twin, least_twin) = kernels.pieces(*arguments), reference.pieces(*arguments)
    np.testing.assert_array_equal(root, twin)
    np.testing.assert_array_equal(least.ravel()[root], least_twin.ravel()[twin])
    held = np.unique(root[weight > 0])
    assert N_COARSE <= len(held) <= weight.size
    assert (
        kind[held // 8][np.searchsorted(held, root[weight > 0])] == np.repeat(kind, (weight > 0).sum(1))
    ).all()


@pytest.mark.parametrize("n_interior", [N, 25, 0])
def test_a_product_with_floats_is_that_of_the_same_numbers_as_doubles(n_interior):
    rng = np.random.default_rng(n_interior)
    indptr, rows, columns, values = matrix(rng, n_interior)
    single = kernels.empty(values.shape, "float32")
    single[:] = values
    values[:] = single
    d, sums = kernels.empty(3 * N), []
    d[:] = rng.standard_normal(3 * N)
    for stored in (values, single):
        q = kernels.empty(3 * N)
        product = kernels.SymProduct(indptr, rows, columns, stored, n_interior, d, q)
        sums.append((product.interface() + product.interior(), q))
    (dq, q), (dq_single, q_single) = sums
    np.testing.assert_allclose(q_single, q, rtol=1e-13, atol=1e-12)
    assert dq_single == pytest.approx(dq, rel=1e-12)
