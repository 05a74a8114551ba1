"""The dual graph against brute force, and its speed."""

import time

import numpy as np
import pytest
from mesh_samples import ELEMENTS, shuffled

from fembench.base.errors import InputError
from fembench.mesh import facets
from fembench.mesh.box import box
from fembench.mesh.elements import element_named
from fembench.mesh.facets import NONE, dual_graph, facet_neighbours


def behind_by_brute_force(mesh):
    facets = element_named(mesh.element).facets
    owners = {}
    for c, cell in enumerate(mesh.cells.tolist()):
        for f, facet in enumerate(facets.tolist()):
            owners.setdefault(frozenset(cell[i] for i in facet), []).append((c, f))
    behind = np.full((mesh.n_cells, len(facets)), NONE)
    for pair in owners.values():
        if len(pair) == 2:
            (a, f), (b, g) = pair
            behind[a, f], behind[b, g] = b, a
    return behind


@pytest.mark.parametrize("element", ELEMENTS)
def test_the_cell_behind_each_facet_is_the_one_brute_force_finds_and_the_graph_lists_it(element):
    mesh = shuffled(element)
    behind, expected = facet_neighbours(mesh.cells, element), behind_by_brute_force(mesh)
    assert np.array_equal(behind, expected)
    graph = dual_graph(behind)
    assert np.array_equal(graph.neighbours, expected[expected >= 0])
    assert np.array_equal(np.diff(graph.starts), (expected >= 0).sum(axis=1))


@pytest.mark.parametrize("element", ELEMENTS)
def test_large_node_numbers_are_matched_too(element):
    mesh = shuffled(element)
    far = mesh.cells + np.int32(2**31 - 1 - mesh.n_nodes)
    assert np.array_equal(facet_neighbours(far, element), facet_neighbours(mesh.cells, element))


@pytest.mark.parametrize("modulus", [1, 5, 1000])
def test_facets_whose_keys_clash_are_told_apart(monkeypatch, modulus):
    mesh = shuffled("hex8")
    monkeypatch.setattr(facets, "_mixed", lambda rows: rows.sum(axis=1) % modulus)
    assert np.array_equal(facet_neighbours(mesh.cells, "hex8"), behind_by_brute_force(mesh))


@pytest.mark.parametrize("element", ELEMENTS)
def test_three_cells_at_one_facet_are_refused(element):
    cells = box((2, 1, 1), element).cells
    with pytest.raises(InputError, match="three or more cells meet in one facet of cell"):
        facet_neighbours(np.vstack([cells, cells[:1]]), element)


def test_a_cell_alone_has_nothing_behind_it():
    assert facet_neighbours(np.array([[0, 1, 2, 3]]), "tet4").tolist() == [[NONE] * 4]
    assert len(dual_graph(facet_neighbours(np.array([[0, 1, 2, 3]]), "tet4")).neighbours) == 0


def test_the_graph_of_1_3_million_tetrahedra_takes_less_than_two_seconds_of_computing():
    cells = box((76, 38, 76)).cells
    begin = time.process_time()
    graph = dual_graph(facet_neighbours(cells, "tet4"))
    assert time.process_time() - begin < 2.0
    assert len(graph.neighbours) == 4 * len(cells) - 4 * (76 * 38 + 76 * 76 + 38 * 76)
