import numpy as np

from fembench.fem.extent import Extent
from fembench.fem.fields import LinearField, manufactured, manufactured_body_force

EXTENT = Extent(np.array([-0.5, 0.2, 1.0]), np.array([1.5, 1.2, 2.5]))
X = np.random.default_rng(0).uniform(EXTENT.lo, EXTENT.hi, (9, 3))
LAM, MU = 1.7, 0.6


def gradient(x):
    """(n, 3, 3) du_i / dx_j of the manufactured displacement, exact by complex steps."""
    u, h = manufactured(EXTENT), 1e-30
    return np.stack([u(x + 1j * h * step).imag / h for step in np.eye(3)], axis=2)


def stress(x):
    G = gradient(x)
    return LAM * np.einsum("nii->n", G)[:, None, None] * np.eye(3) + MU * (G + G.transpose(0, 2, 1))


def test_the_manufactured_body_force_balances_the_divergence_of_its_stress():
    h = 1e-5
    divergence = sum(
        (stress(X + step)[:, :, j] - stress(X - step)[:, :, j]) / (2 * h)
        for j, step in enumerate(h * np.eye(3))
    )
    force = manufactured_body_force(EXTENT, LAM, MU)(X)
    assert np.abs(force).max() > 1e-3
    np.testing.assert_allclose(force, -divergence, atol=1e-10)


def test_the_manufactured_displacement_scales_with_the_box():
    larger = Extent(10 * EXTENT.lo, 10 * EXTENT.hi)
    np.testing.assert_allclose(manufactured(larger)(10 * X), 10 * manufactured(EXTENT)(X), rtol=1e-12)


def test_a_linear_field_is_its_constant_at_the_origin_and_grows_by_its_gradient():
    gradient = ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0), (7.0, 8.0, 9.0))
    field = LinearField(gradient, (0.1, 0.2, 0.3), "min").at(EXTENT)
    np.testing.assert_allclose(field(EXTENT.lo[None]), [[0.1, 0.2, 0.3]])
    np.testing.assert_allclose(field(EXTENT.lo[None] + [[0, 1, 0]]), [[2.1, 5.2, 8.3]])
