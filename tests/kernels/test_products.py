"""Every product against the dense matrix of plain assembly, its range rule, and its fused inner product."""

import math

import numpy as np
import pytest
import reference
from kernel_samples import LAM, MU, SAMPLES

from fembench.kernels.backend import kernels
from fembench.solve.operators import build_operator

STORAGES = ("dense", "csr", "bsr", "sym", "ebe")
every_sample = pytest.mark.parametrize("s", SAMPLES.values(), ids=SAMPLES.keys())
every_storage = pytest.mark.parametrize("storage", STORAGES)


def dense_stiffness(s):
    """A by numpy alone: sum of element matrices, then the restraints."""
    n = 3 * s.n_active
    A = np.zeros((3 * len(s.x), 3 * len(s.x)))
    dofs = (3 * s.cells[:, :, None] + np.arange(3)).reshape(len(s.cells), -1)
    np.add.at(A, (dofs[:, :, None], dofs[:, None, :]), reference.stiffness(s.x, s.cells, LAM, MU))
    A = A[:n, :n]
    A[s.fixed] = 0
    A[:, s.fixed] = 0
    A[s.fixed, s.fixed] = 1
    return A


def vectors(s, seed=0):
    """Random d and a q full of nonsense, as the product may find it."""
    n = 3 * s.n_active
    d, q = kernels.empty(n), kernels.empty(n)
    d[:] = np.random.default_rng(seed).standard_normal(n)
    q[:] = np.nan
    return d, q


@every_sample
@every_storage
def test_the_interface_is_final_after_the_first_range(s, storage):
    d, q = vectors(s)
    product = build_operator(storage, s, LAM, MU).bind(d, q)
    product.interface()
    early = q[3 * s.n_interior :].copy()
    product.interior()
    np.testing.assert_array_equal(q[3 * s.n_interior :], early)
    assert np.isfinite(q).all()


@every_sample
@every_storage
def test_what_happens_to_the_interface_between_the_ranges_does_not_matter(s, storage):
    d, q = vectors(s)
    product = build_operator(storage, s, LAM, MU).bind(d, q)
    product.interface()
    once = product.interior()
    first = q.copy()
    q[:] = np.nan
    product.interface()
    q[3 * s.n_interior :] += 1.0  # the neighbours' share arrives
    assert product.interior() == once
    np.testing.assert_array_equal(q[: 3 * s.n_interior], first[: 3 * s.n_interior])


@every_sample
@pytest.mark.parametrize("storage", ["bsr", "sym", "ebe"])
def test_the_fused_inner_product_is_exact_to_rounding(s, storage):
    d, q = vectors(s)
    product = build_operator(storage, s, LAM, MU).bind(d, q)
    at_interface, inside = product.interface(), product.interior()
    cut = 3 * s.n_interior
    for fused, part in ((at_interface, slice(cut, None)), (inside, slice(0, cut))):
        exact = math.fsum((d[part].astype(np.longdouble) * q[part]).astype(float))
        size = float(np.abs(d[part] * q[part]).sum())
        assert abs(fused - exact) <= 4e-16 * max(size, 1e-300) * 4


@every_sample
@every_storage
def test_diagonals_are_those_of_the_matrix(s, storage):
    A = dense_stiffness(s)
    operator = build_operator(storage, s, LAM, MU)
    tolerance = 1e-13 * max(np.abs(A).max(initial=0), 1)
    np.testing.assert_allclose(operator.diagonal(), np.diag(A), rtol=0, atol=tolerance)
    blocks = operator.block_diagonal()
    assert blocks.shape == (s.n_active, 3, 3)
    for i in range(s.n_active):
        np.testing.assert_allclose(blocks[i], A[3 * i : 3 * i + 3, 3 * i : 3 * i + 3], rtol=0, atol=tolerance)


@every_sample
@every_storage
def test_apply_leaves_its_argument_alone(s, storage):
    d, q = vectors(s)
    operator = build_operator(storage, s, LAM, MU)
    product = operator.bind(d, q)
    product.interface()
    product.interior()
    x = d.copy()
    x.flags.writeable = False
    np.testing.assert_array_equal(operator.apply(x), q)


def test_a_vector_of_the_wrong_size_is_refused():
    s = SAMPLES["tets"]
    d, q = vectors(s)
    operator = build_operator("sym", s, LAM, MU)
    with pytest.raises(ValueError, match="d: expected"):
        operator.bind(d[:-3], q)
