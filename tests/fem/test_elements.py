import numpy as np
import pytest
from fem_meshes import ELEMENTS, LAM, MU, distorted, skewed_cell

from fembench.base.errors import InputError
from fembench.fem import elements
from fembench.fem.elements import (
    body_integral,
    element_stiffness,
    facet_shape_integral,
    measures,
    scatter_add,
)
from fembench.fem.extent import rigid_modes
from fembench.fem.shapes import element_named
from fembench.mesh.facets import boundary_facets

UNIT_TET = np.array([[[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]])


@pytest.mark.parametrize("element", ELEMENTS)
def test_an_element_matrix_is_exactly_symmetric_with_six_zero_eigenvalues_the_rigid_motions(element):
    cell = skewed_cell(element)
    ke = element_stiffness(cell, element, LAM, MU)[0]
    assert np.array_equal(ke, ke.T)
    values = np.linalg.eigvalsh(ke)
    assert np.abs(values[:6]).max() < 1e-14 * values[-1]
    assert values[6] > 1e-3 * values[-1]
    assert np.abs(ke @ rigid_modes(cell[0]).reshape(-1, 6)).max() < 1e-14


@pytest.mark.row("004:2.3")
def test_the_unit_tetrahedron_has_the_matrix_of_a_hand_calculation():
    ke = element_stiffness(UNIT_TET, "tet4", LAM, MU)[0] * 6  # volume 1/6
    x1, y1, x2, y2, z2 = 3, 4, 6, 7, 8  # dofs of nodes 1 and 2, whose gradients are e_x and e_y
    assert ke[x1, x1] == pytest.approx(LAM + 2 * MU, rel=1e-14)
    assert ke[y1, y1] == pytest.approx(MU, rel=1e-14)
    assert ke[x1, y2] == pytest.approx(LAM, rel=1e-14)
    assert ke[y1, x2] == pytest.approx(MU, rel=1e-14)
    assert ke[x1, x2] == ke[x1, z2] == 0.0
    assert ke[0, 0] == pytest.approx(LAM + 4 * MU, rel=1e-14)  # node 0: gradient (-1, -1, -1)


@pytest.mark.parametrize("element", ELEMENTS)
def test_a_turned_cell_has_the_turned_matrix_and_a_larger_one_the_larger(element):
    cell = skewed_cell(element)
    R = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]
    R *= np.linalg.det(R)
    ke = element_stiffness(cell, element, LAM, MU)[0]
    turned = element_stiffness(2.5 * cell @ R.T, element, LAM, MU)[0]
    Q = np.kron(np.eye(cell.shape[1]), R)
    np.testing.assert_allclose(turned, 2.5 * Q @ ke @ Q.T, atol=1e-13)


def test_more_cells_than_a_chunk_give_the_same_matrices(monkeypatch):
    mesh = distorted("tet4")
    whole = element_stiffness(mesh.x[mesh.cells], "tet4", LAM, MU)
    monkeypatch.setattr(elements.chunks, "__defaults__", (7,))
    np.testing.assert_allclose(element_stiffness(mesh.x[mesh.cells], "tet4", LAM, MU), whole, atol=1e-16)


@pytest.mark.parametrize("element", ELEMENTS)
def test_the_cells_of_a_distorted_box_fill_it(element):
    mesh = distorted(element)
    dV = measures(mesh.x[mesh.cells], element, element_named(element).load_rule)
    assert dV.sum() == pytest.approx(0.5, rel=1e-14)


@pytest.mark.parametrize("element", ELEMENTS)
def test_a_linear_body_force_adds_up_to_its_value_at_the_centre_of_the_box(element):
    mesh = distorted(element)
    G = np.random.default_rng(5).standard_normal((3, 3))
    fe = body_integral(mesh.x[mesh.cells], element, lambda x: x @ G)
    np.testing.assert_allclose(fe.sum(axis=(0, 1)), 0.5 * np.array([0.5, 0.25, 0.5]) @ G, rtol=1e-12)


@pytest.mark.parametrize("element", ELEMENTS)
def test_the_boundary_of_a_box_has_its_area(element):
    mesh = distorted(element)
    facets, _ = boundary_facets(mesh.cells, element)
    assert facet_shape_integral(mesh.x[facets]).sum() == pytest.approx(4.0, rel=1e-13)


def test_a_flat_rectangle_gives_each_node_a_quarter_and_a_triangle_a_third():
    rectangle = np.array([[[0.0, 0, 1], [2, 0, 1], [2, 3, 1], [0, 3, 1]]])
    np.testing.assert_allclose(facet_shape_integral(rectangle), [[1.5] * 4], rtol=1e-14)
    np.testing.assert_allclose(facet_shape_integral(rectangle[:, :3]), [[1.0] * 3], rtol=1e-14)


@pytest.mark.parametrize("element", ELEMENTS)
def test_an_inverted_cell_is_refused_with_how_many_there_are(element):
    cells = np.concatenate([skewed_cell(element), skewed_cell(element) * [1, 1, -1]])
    with pytest.raises(InputError, match=f"1 of 2 {element} cells are inverted or degenerate"):
        element_stiffness(cells, element, LAM, MU)


def test_scattering_adds_repeated_nodes_and_accepts_nothing():
    target = np.ones((6, 3))
    nodes = np.array([[2, 4], [4, 3]], dtype=np.int32)
    scatter_add(target, nodes, np.arange(12.0).reshape(2, 2, 3))
    np.testing.assert_array_equal(target[4], [1 + 3 + 6, 1 + 4 + 7, 1 + 5 + 8])
    np.testing.assert_array_equal(target[[0, 1, 5]], 1.0)
    scatter_add(target, nodes[:0], np.zeros((0, 2, 3)))
