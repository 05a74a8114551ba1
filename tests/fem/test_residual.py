import numpy as np
import pytest
from fem_meshes import ELEMENTS, LAM, MU, distorted

from fembench.fem import residual
from fembench.fem.reference_solve import assembled
from fembench.fem.residual import internal_force, strain_energy
from fembench.fem.rigid import rigid_modes


@pytest.fixture(params=ELEMENTS)
def body(request):
    """(x, cells, element, lam, mu) of a distorted box."""
    mesh = distorted(request.param)
    return mesh.x, mesh.cells, mesh.element, LAM, MU


def test_the_internal_force_is_the_assembled_matrix_times_the_displacements(body):
    u = np.random.default_rng(0).standard_normal(body[0].shape)
    expected = (assembled(*body) @ u.ravel()).reshape(-1, 3)
    np.testing.assert_allclose(internal_force(*body, u), expected, atol=1e-14 * np.abs(expected).max())


def test_a_body_of_many_chunks_gives_the_same_force(body, monkeypatch):
    u = np.random.default_rng(0).standard_normal(body[0].shape)
    whole = internal_force(*body, u)
    monkeypatch.setattr(residual, "CHUNK", 7)
    np.testing.assert_allclose(internal_force(*body, u), whole, atol=1e-14 * np.abs(whole).max())


def test_a_rigid_motion_causes_no_force(body):
    for mode in np.moveaxis(rigid_modes(body[0]), 2, 0):
        force = internal_force(*body, np.ascontiguousarray(mode))
        assert np.linalg.norm(force) < 1e-14 * assembled(*body).diagonal().max() * np.linalg.norm(mode)


def test_a_linear_field_causes_no_force_inside_the_body(body):
    x = body[0]
    inside = np.all((x > 1e-9) & (x < np.array([1, 0.5, 1]) - 1e-9), axis=1)
    G = np.random.default_rng(1).standard_normal((3, 3))
    force = internal_force(*body, x @ G.T)
    assert inside.sum() > 10
    assert np.abs(force[inside]).max() < 1e-14
    assert np.abs(force[~inside]).max() > 1e-2


def test_the_energy_of_a_linear_field_is_the_energy_density_times_the_volume(body):
    G = np.random.default_rng(1).standard_normal((3, 3))
    epsilon = (G + G.T) / 2
    density = LAM / 2 * np.trace(epsilon) ** 2 + MU * np.sum(epsilon**2)
    assert strain_energy(*body, body[0] @ G.T) == pytest.approx(0.5 * density, rel=1e-13)


def test_no_cells_give_no_force(body):
    x, cells, *rest = body
    assert not internal_force(x, cells[:0], *rest, x).any()
