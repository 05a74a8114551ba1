"""Every bad file is one clear line: no traceback, no exit, nothing printed."""

import contextlib
import io
import os
from pathlib import Path

import meshio
import numpy as np
import pytest
from mesh_samples import ELEMENTS, shuffled, tagged

from fembench.base.errors import InputError
from fembench.mesh.io import read, write

FORMATS = (".msh", ".vtu", ".vtk", ".mesh", ".inp", ".su2", ".avs", ".xml", ".bdf", ".off")
X = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1], [1, 0, 1], [0, 1, 1]], float)
CUBE = [0, 1, 4, 2, 3, 6, 5, 7]


def refused(path):
    """The message, after a check of its form and that nothing was printed."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(InputError) as caught,
    ):
        read(path)
    message = str(caught.value)
    assert "\n" not in message
    assert path.name in message or path.stem in message
    assert (out.getvalue(), err.getvalue()) == ("", "")
    return message


def file_of(tmp_path, *blocks, x=X, name="bad.vtu"):
    meshio.Mesh(x, list(blocks)).write(tmp_path / name)
    return tmp_path / name


def test_a_missing_file_a_folder_and_an_unknown_suffix(tmp_path):
    assert refused(tmp_path / "none.msh").endswith("none.msh: no such file")
    assert refused(tmp_path).endswith("not a file")
    (tmp_path / "mesh.what").write_text("hello")
    assert "Could not deduce file format" in refused(tmp_path / "mesh.what")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read(tmp_path):
    path = tmp_path / "locked.msh"
    path.write_text("$MeshFormat")
    path.chmod(0)
    assert "Permission denied" in refused(path)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("content", ["empty", "noise", "prose", "numbers", "zeros"])
def test_garbage(tmp_path, suffix, content):
    noise = np.random.default_rng(0).integers(0, 256, 5000, dtype=np.uint8).tobytes()
    text = {
        "empty": b"",
        "noise": noise,
        "prose": b"It was a dark and stormy night;\nthe rain fell in torrents.\n" * 20,
        "numbers": b"1 2 3\n4 5 6\n" * 100,
        "zeros": bytes(4096),
    }
    path = tmp_path / f"garbage{suffix}"
    path.write_bytes(text[content])
    refused(path)


GMSH = Path(__file__).parents[2] / "meshes" / "thesis1.msh"  # text


@pytest.mark.parametrize("suffix", [".msh", ".vtu", ".vtk", GMSH])
@pytest.mark.parametrize("element", ELEMENTS)
def test_a_file_cut_short_anywhere_is_refused_or_complete(tmp_path, element, suffix):
    whole, cut = GMSH, tmp_path / "cut.msh"
    if suffix != GMSH:
        whole, cut = tmp_path / f"whole{suffix}", tmp_path / f"cut{suffix}"
        write(tagged(element), whole)
    content = whole.read_bytes()
    lengths = {*np.linspace(0, len(content) - 1, 30).astype(int).tolist()}
    lengths |= {*range(len(content) - 40, len(content))} if suffix == GMSH else set()
    found = [hash_of_cut(cut, content[:length]) for length in sorted(lengths)]
    assert set(found) <= {None, read(whole).hash}
    assert len(found) - found.count(None) <= 2  # the last line feed does not matter


def hash_of_cut(path, content):
    """The hash of a mesh of which so much is left; None where it is refused in one line."""
    path.write_bytes(content)
    with contextlib.suppress(InputError):
        return read(path).hash
    refused(path)
    return None


def test_a_file_cut_in_its_last_number_is_refused_though_all_of_it_makes_sense(tmp_path):
    mesh = tagged("tet4")
    marks = [np.full(mesh.n_cells, 1), np.array([2])]
    data = {"gmsh:physical": marks, "gmsh:geometrical": marks}
    foreign = meshio.Mesh(mesh.x, [("tetra", mesh.cells), ("vertex", [[11]])], cell_data=data)
    foreign.write(tmp_path / "cut.msh", file_format="gmsh22", binary=False)
    whole = (tmp_path / "cut.msh").read_bytes()
    assert read(tmp_path / "cut.msh").node_tags["2"].tolist() == [11]
    (tmp_path / "cut.msh").write_bytes(whole[: whole.index(b"2\n$EndElements")])  # node 12 becomes node 1
    assert refused(tmp_path / "cut.msh").endswith(
        "truncated (Warning: $Elements not closed by $EndElements.)"
    )


def test_text_after_numbers_is_refused_and_not_dropped(tmp_path):
    path = file_of(tmp_path, ("tetra", [[0, 1, 2, 3]]), x=X[:4])
    meshio.vtu.write(path, meshio.read(path), binary=False)
    text = path.read_text()
    start = text.index("connectivity")
    end = text.index("</DataArray>", start)
    path.write_text(f"{text[:end]} and so on{text[end:]}")
    assert "unmatched data" in refused(path)


TET, TRIANGLES = ("tetra", [[0, 1, 2, 3]]), ("triangle", [[0, 1, 2], [1, 4, 2]])
HIGHER = "expected 4-node tetra or 8-node hexahedron"


def cell(kind, nodes):
    return kind, [list(range(nodes))]


@pytest.mark.parametrize(
    ("blocks", "x", "message"),
    [
        ([TRIANGLES], X, "a 2-D mesh (2 triangle cells only); expected tetrahedra or hexahedra"),
        ([TET, ("hexahedron", [CUBE])], X, "mixed cells (1 hexahedron and 1 tetra); expected one kind"),
        *(
            (
                [cell(kind, n)],
                np.random.default_rng(0).random((n, 3)),
                f"higher-order cells (1 {kind}); {HIGHER}",
            )
            for kind, n in (("tetra10", 10), ("hexahedron20", 20), ("hexahedron27", 27))
        ),
        *(
            ([TET, cell(kind, n)], X, f"unsupported cells (1 {kind})")
            for kind, n in (("wedge", 6), ("pyramid", 5))
        ),
        ([("tetra", [[0, 2, 1, 3]])], X[:4], "mesh bad: 1 of 1 cells (first: 0) inverted (negative volume"),
    ],
)
def test_cells_and_nodes_that_make_no_mesh(tmp_path, blocks, x, message):
    assert message in refused(file_of(tmp_path, *blocks, x=x))


def test_a_plane_mesh_of_two_coordinates(tmp_path):
    plane = file_of(tmp_path, ("quad", [[0, 1, 2, 3]]), x=X[:4, :2], name="bad.mesh")
    assert "a 2-D mesh (1 quad cells only)" in refused(plane)


def test_a_file_without_cells(tmp_path):
    (tmp_path / "bad.msh").write_text(
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n1\n1 0 0 0\n$EndNodes\n$Elements\n0\n$EndElements\n"
    )
    refused(tmp_path / "bad.msh")


def test_nodes_in_no_cell_are_left_out_with_a_note_and_the_others_keep_their_tags(tmp_path, capsys):
    shape = meshio.Mesh(X, [("tetra", [[4, 6, 5, 7]])], point_sets={"top": [0, 5, 7], "point": [1]})
    shape.write(tmp_path / "bad.inp")
    mesh = read(tmp_path / "bad.inp")
    assert capsys.readouterr() == ("", "note: mesh bad: 4 nodes of 8, in no cell, left out\n")
    assert (mesh.x.tolist(), mesh.cells.tolist()) == (X[4:].tolist(), [[0, 2, 1, 3]])
    assert {tag: nodes.tolist() for tag, nodes in mesh.node_tags.items()} == {"top": [1, 3]}


def test_a_tagged_facet_of_no_cell(tmp_path):
    mesh = shuffled("tet4")
    cells = [("tetra", mesh.cells), ("triangle", [[0, 1, 2]])]
    marks = [np.zeros(mesh.n_cells, int), np.array([4])]
    meshio.Mesh(mesh.x, cells, cell_data={"medit:ref": marks}).write(tmp_path / "bad.mesh")
    assert "facet tag '4': 1 of 1 facets belong to no cell" in refused(tmp_path / "bad.mesh")
