"""Files: round trips, foreign tags, data for ParaView."""

import warnings

import meshio
import numpy as np
import pytest
from mesh_samples import ELEMENTS, facets_by_count, shuffled, tagged

from fembench.base.errors import InputError
from fembench.mesh.elements import element_named
from fembench.mesh.io import read, write
from fembench.mesh.mesh import Mesh


@pytest.mark.row("004:F2")
@pytest.mark.parametrize("suffix", [".vtu", ".msh", ".vtk"])
@pytest.mark.parametrize("element", ELEMENTS)
def test_a_mesh_comes_back_from_a_file_with_its_hash_and_all_its_tags(tmp_path, element, suffix):
    mesh = tagged(element)
    write(mesh, tmp_path / f"part{suffix}")
    again = read(tmp_path / f"part{suffix}")
    assert again.hash == mesh.hash
    assert again.name == "part"
    assert set(again.facet_tags) == {"skin", "some", "within", "z9"}
    assert {t: n.tolist() for t, n in again.node_tags.items()} == {"tip": [2, 5], "corner": [0]}
    assert list(tmp_path.iterdir()) == [tmp_path / f"part{suffix}"]


KEPT = {".mesh", ".inp", ".su2", ".avs", ".vtu", ".msh", ".vtk"}  # with all digits


@pytest.mark.parametrize("suffix", sorted(meshio.extension_to_filetypes))
@pytest.mark.parametrize("element", ELEMENTS)
def test_every_format_that_is_written_is_read_again_and_the_others_leave_nothing(tmp_path, element, suffix):
    mesh = tagged(element)
    try:
        write(mesh, tmp_path / f"part{suffix}")
    except InputError:
        assert list(tmp_path.iterdir()) == []
        assert suffix not in KEPT
        return
    again = read(tmp_path / f"part{suffix}")
    assert np.allclose(again.x, mesh.x, rtol=0, atol=1e-12 if suffix in KEPT else 1e-6)
    assert np.array_equal(again.cells, mesh.cells)
    assert again.x.dtype.byteorder == "="


@pytest.mark.parametrize("order", ["<", ">", "="])
def test_a_mesh_takes_read_only_arrays_of_any_byte_order_and_layout(order):
    mesh = tagged("tet4")
    x, cells = np.repeat(mesh.x, 2, axis=0)[::2], np.asfortranarray(mesh.cells)
    if order == ">":
        x, cells = x.byteswap(), cells.byteswap()
    x, cells = x.view(x.dtype.newbyteorder(order)), cells.view(cells.dtype.newbyteorder(order))
    x.flags.writeable = cells.flags.writeable = False
    again = Mesh.create(x, cells, "tet4", "", mesh.node_tags, mesh.facet_tags)
    assert again.hash == mesh.hash
    for ours in (again.x, again.cells):
        assert ours.dtype.byteorder == "="
        assert ours.flags.c_contiguous


@pytest.mark.parametrize("element", ELEMENTS)
def test_vtu_carries_data_of_nodes_and_cells_and_no_extra_cells(tmp_path, element):
    mesh = tagged(element)
    u, part = mesh.x**2, np.arange(mesh.n_cells)
    write(mesh, tmp_path / "u.vtu", point_data={"u": u}, cell_data={"part": part, "stress": part * 0.5})
    seen = meshio.read(tmp_path / "u.vtu")
    assert np.array_equal(seen.point_data["u"], u)
    assert np.array_equal(seen.cell_data["part"][0], part)
    assert np.array_equal(seen.cell_data["stress"][0], part * 0.5)
    assert [block.type for block in seen.cells] == [element_named(element).meshio]
    assert read(tmp_path / "u.vtu").hash == mesh.hash


def test_a_facet_bit_in_vtu_is_the_facet_opposite_to_or_numbered_by_its_place(tmp_path):
    mesh = Mesh.create(
        np.vstack([np.zeros(3), np.eye(3)]), [[0, 1, 2, 3]], "tet4", facet_tags={"f": [[3, 2, 1], [0, 1, 3]]}
    )
    write(mesh, tmp_path / "f.vtu")
    assert meshio.read(tmp_path / "f.vtu").cell_data["facet_tag:f"][0].tolist() == [0b0101]


def foreign(tmp_path, name, mesh, blocks=(), **more):
    """A file with the cells of a mesh and further blocks, as another program would write it."""
    cells = [(element_named(mesh.element).meshio, mesh.cells), *blocks]
    path = tmp_path / name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        meshio.Mesh(mesh.x, cells, **more).write(path)
    return path


def test_physical_surfaces_curves_and_points_become_tags(tmp_path):
    mesh = shuffled("tet4")
    skin = facets_by_count(mesh, 1)
    blocks = [
        ("triangle", skin[:7]),
        ("line", skin[7:9, :2]),
        ("vertex", [[4], [2]]),
        ("triangle", skin[9:12]),
    ]
    marks = [np.full(mesh.n_cells, 9), np.full(7, 1), np.full(2, 2), np.full(2, 3), np.array([1, 5, 0])]
    names = {"wall": np.array([1, 2]), "edge": np.array([2, 1]), "support": np.array([3, 0])}
    data = {"gmsh:physical": marks, "gmsh:geometrical": marks}
    path = tmp_path / "g.msh"
    solid = ("tetra", mesh.cells)
    meshio.Mesh(mesh.x, [solid, *blocks], cell_data=data, field_data=names).write(path, file_format="gmsh22")
    found = read(path)
    assert sorted_rows(found.facet_tags["wall"]) == sorted_rows(np.vstack([skin[:7], skin[9:10]]))
    assert sorted_rows(found.facet_tags["5"]) == sorted_rows(skin[10:11])
    assert set(found.facet_tags) == {"wall", "5"}
    assert found.node_tags["edge"].tolist() == np.unique(skin[7:9, :2]).tolist()
    assert found.node_tags["support"].tolist() == [2, 4]


def sorted_rows(facets):
    return sorted(tuple(sorted(f)) for f in facets.tolist())


def test_marks_of_medit_and_sets_of_abaqus_become_tags(tmp_path):
    mesh = shuffled("tet4")
    skin = facets_by_count(mesh, 1)
    marks = {"medit:ref": [np.zeros(mesh.n_cells, int), np.array([3, 0, 7, 3])]}
    found = read(foreign(tmp_path, "m.mesh", mesh, [("triangle", skin[:4])], cell_data=marks))
    assert {t: sorted_rows(f) for t, f in found.facet_tags.items()} == {
        "3": sorted_rows(skin[[0, 3]]),
        "7": sorted_rows(skin[[2]]),
    }
    path = foreign(tmp_path, "a.inp", mesh, point_sets={"HELD": np.array([5, 1, 3])})
    assert read(path).node_tags["HELD"].tolist() == [1, 3, 5]


def test_cells_in_several_blocks_keep_their_order_and_untagged_facets_leave_no_tag(tmp_path):
    mesh = shuffled("tet4")
    blocks = [("tetra", mesh.cells[:10]), ("triangle", facets_by_count(mesh, 1)), ("tetra", mesh.cells[10:])]
    meshio.Mesh(mesh.x, blocks).write(tmp_path / "b.vtu")
    found = read(tmp_path / "b.vtu")
    assert np.array_equal(found.cells, mesh.cells)
    assert found.facet_tags == {}


def test_single_precision_coordinates_are_read_as_they_are(tmp_path):
    mesh = shuffled("tet4")
    path = tmp_path / "f.vtu"
    meshio.Mesh(mesh.x.astype(np.float32), [("tetra", mesh.cells)]).write(path)
    assert np.array_equal(read(path).x, mesh.x.astype(np.float32))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("part", "suffix ''; expected .vtu"),
        ("part.node", "suffix '.node'; expected .vtu"),
        ("part.xdmf", "suffix '.xdmf'; expected .vtu"),
        ("part.stl", "suffix '.stl'; expected .vtu"),
        ("part.ugrid", "suffix '.ugrid'; expected .vtu"),
        ("part.xyz", "Could not deduce file format from path .*part.xyz"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_and_leaves_nothing(tmp_path, name, message):
    with pytest.raises(InputError, match=message):
        write(tagged("tet4"), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file_and_a_full_disk_are_refused_and_leave_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write .*part.vtu: .*file is not a folder"):
        write(tagged("tet4"), tmp_path / "file" / "part.vtu")

    with pytest.raises(InputError, match=r"cannot write mesh .*part.vtu: no folder .*absent"):
        write(tagged("tet4"), tmp_path / "absent" / "part.vtu")

    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(meshio, "write", full)
    with pytest.raises(InputError, match=r"cannot write .*part.vtu: No space left on device"):
        write(tagged("tet4"), tmp_path / "part.vtu")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_a_msh_file_cannot_hold_is_refused(tmp_path):
    mesh = tagged("tet4")
    with pytest.raises(InputError, match=r"cannot write cell data \(part\) to a .msh file; expected .vtu"):
        write(mesh, tmp_path / "p.msh", cell_data={"part": np.zeros(mesh.n_cells)})
    twice = Mesh(mesh.x, mesh.cells, "tet4", "", {"a": mesh.node_tags["tip"]}, {"a": mesh.facet_tags["some"]})
    with pytest.raises(InputError, match="tag 'a' names both nodes and facets"):
        write(twice, tmp_path / "p.msh")
    write(twice, tmp_path / "p.vtu")
    assert read(tmp_path / "p.vtu").hash == twice.hash


def test_a_tag_may_have_the_name_of_the_body(tmp_path):
    mesh = tagged("tet4")
    named = Mesh(mesh.x, mesh.cells, "tet4", "", {}, {"solid": mesh.facet_tags["some"]})
    write(named, tmp_path / "s.msh")
    assert read(tmp_path / "s.msh").hash == named.hash
