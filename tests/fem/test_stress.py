import numpy as np
import pytest
from fem_meshes import ELEMENTS, LAM, MU, distorted

from fembench.fem.stress import cell_strain, cell_stress, von_mises


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
