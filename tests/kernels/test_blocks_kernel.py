"""Several blocks in one call: each does what it does alone, and its numbers come to its place."""

from array import array

import numpy as np
import pytest

from fembench.kernels.backend import kernels

PLACES, ALL = np.array([3, 1], np.int64), 5


def block(seed, inverse, storage="bsr"):
    """(product, vectors, arrays) of one dense little block."""
    n, rng = 4, np.random.default_rng(seed)
    x, r, d, q = (kernels.zeros(3 * n) for _ in range(4))
    x[:], r[:], d[:] = rng.standard_normal((3, 3 * n))
    values = kernels.zeros((n * n, 3, 3))
    values[:] = rng.standard_normal(values.shape)
    indptr, columns = np.arange(0, n * n + 1, n), np.tile(np.arange(n, dtype=np.int32), n)
    if storage == "bsr":
        product = kernels.BsrProduct(indptr, columns, values, 2, d, q)
    else:
        dense = np.ascontiguousarray(values.reshape(n, n, 3, 3).transpose(0, 2, 1, 3).reshape(3 * n, 3 * n))
        product = kernels.DenseProduct(dense, 2, d, q)
    weights = np.full(3 * 2, 0.5)
    D = rng.random(3 * n) + 0.5 if inverse else None
    return product, kernels.CGVectors(x, r, d, q, r, weights, D), (x, r, d, q)


@pytest.mark.parametrize("inverse", [False, True], ids=["plain", "jacobi"])
def test_blocks_do_together_what_each_does_alone(inverse):
    together, alone = ([block(seed, inverse) for seed in (1, 2)] for _ in range(2))
    tau, rho = array("d", [7.0] * ALL), array("d", [7.0] * (ALL * (1 + inverse)))
    blocks = kernels.Blocks(PLACES, [b[0] for b in together], [b[1] for b in together], tau, rho)
    blocks.direction(0.3)
    blocks.interface()
    blocks.interior()
    blocks.step(0.1)
    expected_tau, expected_rho = [0.0] * ALL, [0.0] * len(rho)
    for place, (product, vectors, _) in zip(PLACES, alone):
        vectors.direction(0.3)
        expected_tau[place] = product.interface() + product.interior()
        sums = vectors.step_jacobi(0.1) if inverse else [vectors.step(0.1)]
        for k, value in enumerate(sums):
            expected_rho[place + k * ALL] = value
    assert (tau.tolist(), rho.tolist()) == (expected_tau, expected_rho)
    for (_, _, a), (_, _, b) in zip(together, alone):
        np.testing.assert_array_equal(a, b)


def test_products_that_know_no_inner_product_are_asked_for_it_later():
    together = [block(seed, False, "dense") for seed in (1, 2)]
    tau = array("d", [7.0] * ALL)
    products, vectors, _ = zip(*together)
    blocks = kernels.Blocks(PLACES, products, vectors, tau, array("d", [0.0] * ALL))
    blocks.interface()
    blocks.interior()
    assert tau.tolist() == [0.0] * ALL
    blocks.dot()
    assert [tau[p] for p in PLACES] == [v.dot_dq() for v in vectors]


def test_processor_time_is_gathered_where_it_is_asked_for():
    products, vectors, _ = zip(*(block(seed, False) for seed in (1, 2)))
    spent = np.zeros(ALL)
    blocks = kernels.Blocks(PLACES, products, vectors, array("d", [0] * ALL), array("d", [0] * ALL), spent)
    for _ in range(100):
        blocks.interface()
        blocks.interior()
    assert (spent[PLACES] > 0).all()
    assert spent.sum() == spent[PLACES].sum()


@pytest.mark.parametrize(
    ("places", "n_rho", "word"), [([5, 1], 5, "places"), ([0, 1], 7, "rho"), ([0], 5, "one of each")]
)
def test_lists_that_do_not_fit_are_refused(places, n_rho, word):
    products, vectors, _ = zip(*(block(seed, False) for seed in (1, 2)))
    tau, rho = array("d", [0] * ALL), array("d", [0] * n_rho)
    with pytest.raises(ValueError, match=word):
        kernels.Blocks(np.array(places, np.int64), products, vectors, tau, rho)
