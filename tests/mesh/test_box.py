"""Boxes against the stand-ins for the meshes of Ferreira (2006), geometry, and arithmetic."""

import itertools
import time

import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.mesh.box import FACES, Box, box, box_cells_for_equations
from fembench.mesh.elements import quality, volumes
from fembench.mesh.mesh import Mesh

STAND_INS = [  # cells, nodes, tetrahedra, restrained dofs, equations, structural non-zeros
    ((6, 4, 6), 245, 864, 105, 630, 21276),
    ((12, 5, 11), 936, 3960, 216, 2592, 96966),
    ((13, 9, 13), 1960, 9126, 420, 5460, 214470),
]


@pytest.mark.row("004:2.2", "004:2.9a")
@pytest.mark.parametrize(("cells", "nodes", "tets", "restrained", "equations", "nonzeros"), STAND_INS)
def test_stand_ins_have_the_published_counts(cells, nodes, tets, restrained, equations, nonzeros):
    mesh, plan = box(cells), Box(cells)
    free = mesh.x[:, 0] > 1e-12
    pairs = np.unique(np.concatenate([mesh.cells[:, [a, b]] for a in range(4) for b in range(4)]), axis=0)
    assert (mesh.n_nodes, mesh.n_cells) == (plan.n_nodes, plan.n_cells) == (nodes, tets)
    assert (3 * np.count_nonzero(~free), 3 * np.count_nonzero(free)) == (restrained, equations)
    assert plan.n_equations == equations
    assert 9 * np.count_nonzero(free[pairs].all(axis=1)) == nonzeros


def test_node_numbers_run_along_x_then_y_then_z():
    mesh = box((2, 3, 4), lengths=(2.0, 3.0, 4.0))
    for i, j, k in itertools.product(range(3), range(4), range(5)):
        assert mesh.x[i + 3 * (j + 4 * k)].tolist() == [i, j, k]


def test_the_six_tetrahedra_run_from_the_first_corner_to_the_last():
    mesh = box((1, 1, 1))
    assert [sorted(cell)[0] for cell in mesh.cells.tolist()] == [0] * 6
    assert [sorted(cell)[3] for cell in mesh.cells.tolist()] == [7] * 6
    assert {tuple(sorted(cell)[1:3]) for cell in mesh.cells.tolist()} == {
        (1, 3), (1, 5), (2, 3), (2, 6), (4, 5), (4, 6)
    }  # fmt: skip


@pytest.mark.parametrize("element", ["tet4", "hex8"])
def test_cells_are_positive_and_fill_the_box(element):
    lengths = (2.0, 0.3, 1.1)
    mesh = box((3, 2, 5), element, lengths)
    volume = volumes(mesh.x, mesh.cells, element)
    assert volume.min() > 0
    assert np.allclose(volume, volume[0], rtol=1e-12)
    assert volume.sum() == pytest.approx(np.prod(lengths), rel=1e-13)
    assert mesh.x.max(axis=0).tolist() == list(lengths)


@pytest.mark.parametrize("element", ["tet4", "hex8"])
def test_a_box_passes_the_checks_that_foreign_meshes_pass_and_keeps_its_hash(element):
    mesh = box((3, 2, 4), element)
    again = Mesh.create(mesh.x, mesh.cells, element, facet_tags=mesh.facet_tags)
    assert again.hash == mesh.hash
    assert np.array_equal(again.facet_tags["y1"], mesh.facet_tags["y1"])


@pytest.mark.parametrize(("element", "facets_each"), [("tet4", 2), ("hex8", 1)])
def test_the_six_faces_are_tagged_whole_and_outward(element, facets_each):
    cells, lengths = (3, 2, 4), (1.0, 0.5, 1.0)
    mesh = box(cells, element, lengths)
    for face, (axis, side) in enumerate(itertools.product(range(3), (0, 1))):
        facets = mesh.facet_tags[FACES[face]]
        p = mesh.x[facets]
        normal = np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0])
        assert len(facets) == facets_each * np.prod(cells) // cells[axis]
        assert np.all(p[:, :, axis] == side * lengths[axis])
        assert np.all(np.sign(normal[:, axis]) == (1 if side else -1))


def test_a_cube_of_hexahedra_is_regular_and_kuhn_tetrahedra_are_alike():
    assert quality(*_arrays(box((2, 2, 2), "hex8", (1.0, 1.0, 1.0)))) == pytest.approx(1.0)
    tets = quality(*_arrays(box((2, 2, 2), "tet4", (1.0, 1.0, 1.0))))
    # edges 1 1 1, two of sqrt 2, one of sqrt 3: 12 (3 / 6)^(2/3) / (3 + 4 + 3)
    assert tets == pytest.approx(12 * 0.5 ** (2 / 3) / 10)


def _arrays(mesh):
    return mesh.x, mesh.cells, mesh.element


@pytest.mark.parametrize("n", [500, 630, 2592, 30_000, 99_999, 700_000])
def test_the_box_for_n_equations_is_the_closest_of_all_nearly_cubic_ones(n):
    nx, ny, nz = (a.ravel() for a in np.meshgrid(*(np.arange(1, 110),) * 3, indexing="ij"))
    edges = np.array([1.0 / nx, 0.5 / ny, 1.0 / nz])
    nearly_cubic = edges.max(axis=0) / edges.min(axis=0) <= 1.25
    closest = np.abs(3 * nx * (ny + 1) * (nz + 1) - n)[nearly_cubic].min()
    assert abs(Box(box_cells_for_equations(n)).n_equations - n) == closest


@pytest.mark.parametrize("lengths", [(1.0, 0.5, 1.0), (1.0, 0.01, 1.0), (100.0, 1.0, 1.0)])
def test_boxes_of_few_equations_and_thin_boxes_exist_too(lengths):
    for n in (1, 12, 100):
        assert min(box_cells_for_equations(n, lengths)) >= 1
    assert Box(box_cells_for_equations(1_000_000, lengths)).n_equations == pytest.approx(1e6, rel=0.01)


def test_counts_of_a_box_of_three_thousand_million_equations_do_not_overflow():
    plan = Box(box_cells_for_equations(3_000_000_000))
    nx, ny, nz = plan.cells
    assert abs(plan.n_equations - 3_000_000_000) < 1_000_000
    assert plan.n_cells == 6 * nx * ny * nz > 2**32
    assert plan.n_nodes == (nx + 1) * (ny + 1) * (nz + 1)
    with pytest.raises(InputError, match="too many for one mesh"):
        box(plan.cells)


def test_a_box_that_exceeds_the_memory_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr("os.sysconf", lambda name: {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 256}[name])
    assert box((6, 4, 6)).n_cells == 864
    with pytest.raises(InputError, match=r"generating it needs about .* GiB; this machine has 0.0 GiB"):
        box((26, 13, 26))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *(
            (lambda cells=cells: box(cells), "three whole numbers")
            for cells in ((0, 1, 1), (1, -2, 1), (1, 1, 1.5), (1, 1))
        ),
        *(
            (lambda lengths=lengths: box((1, 1, 1), lengths=lengths), "three positive lengths")
            for lengths in (
                (1, 0, 1),
                (1, -1, 1),
                (1, float("nan"), 1),
                (1, float("inf"), 1),
                (1, 1),
                (1, 1e200, 1),
            )
        ),
        (lambda: box((1, 1, 1), "tet10"), "unknown element 'tet10'; expected one of tet4, hex8"),
        (lambda: box_cells_for_equations(0), "0 equations"),
    ],
)
def test_a_box_that_cannot_be_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_box_of_700_000_equations_is_made_within_two_seconds_of_computing():
    begin = time.process_time()
    mesh = box((76, 38, 76))
    assert time.process_time() - begin < 2.0
    assert mesh.n_cells == 1_316_928
