"""Meshes by their names: presets, boxes, and the unstructured ones of the box of Ferreira (2006)."""

import re
from pathlib import Path

import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.cli.parser import page
from fembench.cli.verbs import verb_parser
from fembench.mesh.box import box
from fembench.mesh.elements import quality, volumes
from fembench.mesh.presets import PRESETS, box_named, resolve


@pytest.mark.row("004:9.1.1")
@pytest.mark.parametrize(("name", "about"), [("s", 30e3), ("m", 200e3), ("l", 700e3), ("xl", 3e6)])
def test_presets_have_about_the_equations_they_stand_for(name, about):
    assert box_named(name).n_equations == pytest.approx(about, rel=0.03)


def test_presets_are_named_after_themselves_and_can_be_hexahedra():
    assert resolve("m1").name == "m1"
    assert resolve("m1").hash == box((6, 4, 6)).hash
    assert resolve("m1:hex8").element == "hex8"
    assert resolve("m1:hex8").n_cells == 6 * 4 * 6
    assert set(PRESETS) == {"m1", "m2", "m3", "s", "m", "l", "xl"}


def test_a_box_is_named_by_the_specification_that_makes_it_again():
    for spec in ("box:2x3x4", "box:2x3x4:hex8"):
        assert resolve(spec).name == spec
    assert resolve("box:600").name == resolve(resolve("box:600").name).name
    assert resolve("box:2x3x4:tet4").hash == resolve("box:2x3x4").hash


def test_a_box_is_named_as_the_help_shows_it_with_numbers_in_place_of_capitals():
    shown = re.findall(r"box:([\w-]+)", page(verb_parser("run"), 78))
    assert len(shown) == 2
    for form in shown:
        assert resolve("box:" + re.sub("[A-Z]+", "6", form)).element == "tet4"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("m4", r"mesh 'm4': no such file, no preset \(m1 m2 m3 s m l xl; nearest 'm"),
        ("box", "expected box:NXxNYxNZ"),
        ("box:", "box of size ''"),
        ("box:2x3", "box of size '2x3'"),
        ("box:-5", "box of size '-5'"),
        ("box:2x3x4:tet10", "unknown element 'tet10'; expected tet4 or hex8"),
        ("m1:wedge", "unknown element 'wedge'"),
        ("box:0x1x1", "three whole numbers of at least 1"),
        ("box:0", "a box of 0 equations; expected 1 to 1e"),
        ("box:" + "9" * 40, "9 equations; expected 1 to 1e"),
        ("no/such/file.msh", "cannot read mesh no/such/file.msh: no such file"),
    ],
)
def test_a_specification_that_means_nothing_is_one_clear_line(spec, message):
    with pytest.raises(InputError, match=message) as caught:
        resolve(spec)
    assert "\n" not in str(caught.value)


FOLDER = Path(__file__).parents[2] / "meshes"
MESHES = {"thesis1": (233, 855, 618), "thesis2": (933, 4014, 2577), "thesis3": (1984, 9126, 5565)}


@pytest.mark.parametrize("name", MESHES)
def test_they_fill_the_box_with_well_shaped_tetrahedra_and_named_faces_at_about_the_published_sizes(name):
    mesh = resolve(str(FOLDER / f"{name}.msh"))
    equations = 3 * np.count_nonzero(mesh.x[:, 0] > 1e-9)
    assert (mesh.n_nodes, mesh.n_cells, equations) == pytest.approx(MESHES[name], rel=0.06)
    assert np.count_nonzero((mesh.x == [1.0, 0.5, 1.0]).all(axis=1)) == 1  # the loaded corner
    assert volumes(mesh.x, mesh.cells, "tet4").sum() == pytest.approx(0.5, rel=1e-12)
    assert quality(mesh.x, mesh.cells, "tet4").min() > 0.3
    assert set(mesh.facet_tags) == {"x0", "x1", "y0", "y1", "z0", "z1"}
    for tag, facets in mesh.facet_tags.items():
        axis, side = "xyz".index(tag[0]), int(tag[1])
        p = mesh.x[facets]
        assert np.all(p[:, :, axis] == side * (1.0, 0.5, 1.0)[axis])
        area = 0.5 * np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0])
        assert area[:, axis].sum() == pytest.approx((1 if side else -1) * (1.0 if axis == 1 else 0.5))
