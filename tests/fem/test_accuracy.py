import numpy as np
import pytest
from fem_meshes import ELEMENTS, distorted, l2_error

from fembench.fem.accuracy import l2_squares


@pytest.mark.parametrize("element", ELEMENTS)
def test_the_error_of_zero_is_one_and_its_square_the_integral(element):
    """The integral of (x² + y)² + 0 + z² over the box 1 x 1/2 x 1, by hand: 0.1 + 1/12 + 1/24 + 1/6."""
    mesh = distorted(element)

    def exact(x):
        return np.stack([x[:, 0] ** 2 + x[:, 1], 0 * x[:, 0], x[:, 2]], axis=1)

    zero = np.zeros_like(mesh.x)
    error, norm = l2_squares(mesh.x, mesh.cells, element, zero, exact)
    assert norm == pytest.approx(0.1 + 1 / 12 + 1 / 24 + 1 / 6, rel=1e-8)  # beyond a curved hexahedron's rule
    assert error == norm
    assert l2_error(mesh, zero, exact) == 1.0


@pytest.mark.parametrize("element", ELEMENTS)
def test_a_linear_field_is_met_exactly(element):
    mesh = distorted(element)
    G = np.random.default_rng(0).standard_normal((3, 3))
    assert l2_error(mesh, mesh.x @ G.T, lambda x: x @ G.T) < 1e-14
