"""The passes of the conjugate-gradient variants against their twins."""

from array import array

import numpy as np
import pytest
import reference_variants as reference

from fembench.kernels.backend import kernels

SIZES = [(0, 0), (3, 0), (3, 3), (192, 0), (195, 192), (600, 201), (1026, 3)]  # entries, weighted ones
MS = ["identity", "diagonal", "blocks", "external"]
sizes = pytest.mark.parametrize(("n", "n_weighted"), SIZES)
every_m = pytest.mark.parametrize("m", MS)


def vectors(letters, n, seed):
    """A random vector a letter, on memory of the kernels."""
    rng = np.random.default_rng(seed)
    made = {letter: kernels.empty(n) for letter in letters}
    for v in made.values():
        v[:] = rng.standard_normal(n)
    return made


def inverse_of(m, n):
    rng = np.random.default_rng(1)
    shape = {"diagonal": n, "blocks": (n // 3, 6)}.get(m)
    return None if shape is None else rng.random(shape)


def alike(letters, m, n, n_weighted):
    """(compiled, twin): each (kernel, its vectors, its sums), from the same numbers."""
    weights, inverse = np.random.default_rng(2).random(n_weighted), inverse_of(m, n)
    made = []
    for module in (kernels, reference):
        v, sums = vectors(letters, n, 3), array("d", [0.0, 0.0, 0.5])
        if m == "identity":
            v["u"], v["m"] = v["r"], v["w"]
        kind = module.SingleReduction if letters == "xruwps" else module.Pipelined
        made.append((kind(*(v[letter] for letter in letters), weights, inverse, sums), v, sums))
    return made


def assert_same(compiled, twin):
    (_, v, sums), (_, expected, expected_sums) = compiled, twin
    for letter in v:
        np.testing.assert_allclose(v[letter], expected[letter], rtol=1e-13, atol=1e-13, err_msg=letter)
    np.testing.assert_allclose(sums, expected_sums, rtol=1e-12, atol=1e-11)


@sizes
@every_m
@pytest.mark.parametrize("letters", ["xruwps", "xruwpszqmn"], ids=["single-reduction", "pipelined"])
def test_a_step_does_what_its_twin_does(n, n_weighted, m, letters):
    compiled, twin = alike(letters, m, n, n_weighted)
    for kernel, _, _ in (compiled, twin):
        kernel.step(0.7, -1.3)
        kernel.step(-0.2, 0.4)
        if letters == "xruwps":
            if m == "external":
                kernel.dot_ru()
            kernel.dot_wu()
    assert_same(compiled, twin)


@sizes
@every_m
def test_sums_of_vectors_set_anew_move_nothing(n, n_weighted, m):
    compiled, twin = alike("xruwpszqmn", m, n, n_weighted)
    before = {letter: v.copy() for letter, v in compiled[1].items()}
    for kernel, _, _ in (compiled, twin):
        kernel.refresh()
    assert_same(compiled, twin)
    changed = {letter for letter, v in compiled[1].items() if not np.array_equal(v, before[letter])}
    assert changed <= ({"m"} if m in ("diagonal", "blocks") else set())


def test_vectors_that_do_not_fit_are_refused():
    v = vectors("xruwps", 6, 0)
    sums = array("d", [0.0] * 3)
    with pytest.raises(ValueError, match="p: expected 6 items, got 3"):
        kernels.SingleReduction(*(v[k] for k in "xruw"), v["p"][:3], v["s"], np.ones(3), None, sums)
    with pytest.raises(ValueError, match="sums: expected 3 items, got 1"):
        kernels.SingleReduction(*v.values(), np.ones(3), None, array("d", [0.0]))
    with pytest.raises(ValueError, match="three entries a node"):
        kernels.SingleReduction(*v.values(), np.ones(1), None, sums)
