import itertools
from math import factorial

import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.fem.shapes import HEX8, HEX_CORNERS, QUAD4, QUAD_CORNERS, TET4, TRI3, element_named

NODES = {
    "tet4": np.concatenate([np.zeros((1, 3)), np.eye(3)]),
    "hex8": HEX_CORNERS,
    "tri3": np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
    "quad4": QUAD_CORNERS,
}
REFERENCES = [TET4, HEX8, TRI3, QUAD4]


@pytest.fixture(params=REFERENCES, ids=lambda e: e.name)
def reference(request):
    return request.param


def somewhere(reference, n=5):
    return np.random.default_rng(0).uniform(0.05, 0.3, (n, NODES[reference.name].shape[1]))


def test_a_shape_function_is_one_at_its_node_and_zero_at_the_others(reference):
    np.testing.assert_allclose(reference.shape(NODES[reference.name]), np.eye(reference.n_nodes), atol=1e-15)


def test_shape_functions_sum_to_one_everywhere(reference):
    np.testing.assert_allclose(reference.shape(somewhere(reference)).sum(axis=1), 1.0, rtol=1e-14)


def test_slopes_are_the_differences_of_the_shape_functions(reference):
    xi, h = somewhere(reference), 1e-6
    slope = reference.slope(xi)
    for d in range(xi.shape[1]):
        step = h * np.eye(xi.shape[1])[d]
        difference = (reference.shape(xi + step) - reference.shape(xi - step)) / (2 * h)
        np.testing.assert_allclose(slope[:, :, d], difference, atol=1e-9)


def exact_integral(name, powers):
    """Of a monomial over the reference element."""
    if name in ("tet4", "tri3"):
        top = np.prod([factorial(p) for p in powers])
        return top / factorial(sum(powers) + len(powers))
    return np.prod([0.0 if p % 2 else 2 / (p + 1) for p in powers])


@pytest.mark.parametrize(
    ("reference", "rule", "degree"),
    [
        (TET4, TET4.stiffness_rule, 1),
        (TET4, TET4.load_rule, 2),
        (TET4, TET4.fine_rule, 5),
        (HEX8, HEX8.stiffness_rule, 3),
        (HEX8, HEX8.load_rule, 3),
        (HEX8, HEX8.fine_rule, 5),
        (TRI3, TRI3.load_rule, 2),
        (QUAD4, QUAD4.load_rule, 3),
    ],
)
def test_a_rule_integrates_every_monomial_up_to_its_degree(reference, rule, degree):
    dim = rule.points.shape[1]
    for powers in itertools.product(range(degree + 1), repeat=dim):
        if sum(powers) <= degree:
            found = rule.weights @ np.prod(rule.points**powers, axis=1)
            assert found == pytest.approx(exact_integral(reference.name, powers), rel=1e-14, abs=1e-15), (
                powers
            )


def test_an_unknown_element_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="unknown element 'tet10'; expected one of tet4, hex8"):
        element_named("tet10")
