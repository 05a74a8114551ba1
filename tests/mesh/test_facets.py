import numpy as np
import pytest
from mesh_samples import ELEMENTS, facets_by_count, shuffled, shuffled_facets

from fembench.base.errors import InputError
from fembench.mesh.box import box
from fembench.mesh.elements import element_named
from fembench.mesh.facets import boundary_facets, canonical_facets, locate_facets


@pytest.mark.parametrize("element", ELEMENTS)
def test_boundary_facets_are_those_that_one_cell_has(element):
    mesh = shuffled(element)
    facets, cell = boundary_facets(mesh.cells, element)
    assert {tuple(sorted(f)) for f in facets.tolist()} == {
        tuple(f) for f in facets_by_count(mesh, 1).tolist()
    }
    assert all(set(f) <= set(mesh.cells[c].tolist()) for f, c in zip(facets.tolist(), cell))
    assert facets.dtype == cell.dtype == np.int32


@pytest.mark.parametrize("element", ELEMENTS)
def test_boundary_facets_look_outward_by_the_divergence_theorem(element):
    mesh = box((3, 2, 2), element, (1.0, 0.5, 1.0))
    facets, cell = boundary_facets(mesh.cells, element)
    p = mesh.x[facets]
    area = 0.5 * np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0])
    if element == "hex8":
        area += 0.5 * np.cross(p[:, 2] - p[:, 0], p[:, 3] - p[:, 0])
    outward = p.mean(axis=1) - mesh.x[mesh.cells[cell]].mean(axis=1)
    assert np.all(np.einsum("fi,fi->f", area, outward) > 0)
    assert np.allclose(area.sum(axis=0), 0.0, atol=1e-14)
    assert np.einsum("fi,fi->", p.mean(axis=1), area) / 3 == pytest.approx(0.5)


@pytest.mark.parametrize("element", ELEMENTS)
def test_facets_are_located_whatever_the_order_of_their_nodes(element):
    mesh = shuffled(element)
    facets = np.vstack([shuffled_facets(mesh), facets_by_count(mesh, 2)[:, ::-1]])
    cell, facet = locate_facets(mesh.cells, element, facets)
    found = mesh.cells[cell[:, None], element_named(element).facets[facet]]
    assert np.array_equal(np.sort(found, axis=1), np.sort(facets, axis=1))
    for nodes, c in zip(facets.tolist(), cell):  # the lower of two cells
        assert c == min(k for k, other in enumerate(mesh.cells.tolist()) if set(nodes) <= set(other))


def test_facets_of_no_cell_are_not_located():
    cells = box((2, 1, 1)).cells
    apart = np.array([[0, 1, 2], sorted(cells[0][:3].tolist()), [0, 3, 11]])
    assert (locate_facets(cells, "tet4", apart)[0] >= 0).tolist() == [False, True, False]
    assert locate_facets(cells, "tet4", np.array([[0, 5, 6]]))[0].tolist() == [-1]
    with pytest.raises(
        InputError, match=r"tag 'lid': 2 of 3 facets belong to no cell, first with nodes \[0, 1, 2\]"
    ):
        canonical_facets(cells, "tet4", apart, "tag 'lid'")


@pytest.mark.parametrize("element", ELEMENTS)
def test_the_canonical_form_of_the_boundary_is_the_boundary(element):
    mesh = shuffled(element)
    twice = np.vstack([shuffled_facets(mesh), shuffled_facets(mesh)[:4]])
    assert np.array_equal(
        canonical_facets(mesh.cells, element, twice, ""), boundary_facets(mesh.cells, element)[0]
    )
