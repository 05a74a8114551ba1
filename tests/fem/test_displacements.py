"""What follows from displacements: forces, energy, strain, stress, and their error."""

import numpy as np
import pytest
from fem_meshes import ELEMENTS, LAM, MU, distorted, l2_error

from fembench.fem import residual
from fembench.fem.elements import cell_strain, cell_stress, von_mises
from fembench.fem.fields import l2_squares
from fembench.fem.parts import assembled
from fembench.fem.residual import internal_force


@pytest.fixture(params=ELEMENTS)
def body(request):
    """(x, cells, element, lam, mu) of a distorted box."""
    mesh = distorted(request.param)
    return mesh.x, mesh.cells, mesh.element, LAM, MU


def test_the_internal_force_is_the_assembled_matrix_times_the_displacements_in_any_chunks(body, monkeypatch):
    u = np.random.default_rng(0).standard_normal(body[0].shape)
    expected = (assembled(*body) @ u.ravel()).reshape(-1, 3)
    for chunk in (residual.CHUNK, 7):
        monkeypatch.setattr(residual, "CHUNK", chunk)
        np.testing.assert_allclose(internal_force(*body, u), expected, atol=1e-14 * np.abs(expected).max())


def test_the_energy_of_a_linear_field_is_the_energy_density_times_the_volume(body):
    G = np.random.default_rng(1).standard_normal((3, 3))
    epsilon = (G + G.T) / 2
    density = LAM / 2 * np.trace(epsilon) ** 2 + MU * np.sum(epsilon**2)
    u = body[0] @ G.T
    assert np.vdot(u, internal_force(*body, u)) == pytest.approx(density, rel=1e-13)


def test_no_cells_give_no_force(body):
    x, cells, *rest = body
    assert not internal_force(x, cells[:0], *rest, x).any()


@pytest.mark.parametrize("element", ELEMENTS)
def test_a_linear_field_has_its_strain_and_stress_in_every_cell(element):
    mesh = distorted(element)
    G = np.random.default_rng(0).standard_normal((3, 3))
    u = mesh.x @ G.T
    xx, yy, zz = np.diag(G)
    strain = [xx, yy, zz, G[0, 1] + G[1, 0], G[1, 2] + G[2, 1], G[0, 2] + G[2, 0]]
    found = cell_strain(mesh.x, mesh.cells, element, u)
    np.testing.assert_allclose(found, np.tile(strain, (mesh.n_cells, 1)), atol=1e-13)
    pressure = LAM * (xx + yy + zz)
    stress = [pressure + 2 * MU * e for e in strain[:3]] + [MU * e for e in strain[3:]]
    found = cell_stress(mesh.x, mesh.cells, element, LAM, MU, u)
    np.testing.assert_allclose(found, np.tile(stress, (mesh.n_cells, 1)), atol=1e-13)


def test_von_mises_stress_is_the_tension_the_shear_times_root_three_and_zero_under_pressure():
    sigma = np.array([[5.0, 0, 0, 0, 0, 0], [0, 0, 0, 0, -2.0, 0], [3.0, 3, 3, 0, 0, 0]])
    np.testing.assert_allclose(von_mises(sigma), [5.0, 2 * np.sqrt(3), 0.0], atol=1e-14)


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
