import msgspec
import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.fem.extent import Extent
from fembench.fem.problem import PRESETS, ProblemSpec, load_problem, needs_boundary, resolved

FULL = """
[material]
E = 70e9
nu = 0.33
[[constraints]]
on = {plane = "x=min"}
[[constraints]]
on = {tag = "lid"}
u = [0, "free", 1e-3]
[[constraints]]
on = {boundary = true}
field = {gradient = [[1,0,0],[0,1,0],[0,0,1]], origin = "min"}
[[forces]]
on = {point = ["max", 0.5, "max"]}
force = [0, -500, 0]
[[tractions]]
on = {plane = "x = 0.25"}
traction = [1e6, 0, 0]
[body]
gravity = [0, -9.81, 0]
"""


def written(tmp_path, text):
    path = tmp_path / "bracket.toml"
    path.write_text(text)
    return path


def test_a_problem_is_read_from_toml_and_named_by_its_file(tmp_path):
    spec = load_problem(written(tmp_path, FULL))
    assert spec.name == "bracket"
    assert spec.material.E == 70e9
    assert spec.constraints[0].u == (0.0, 0.0, 0.0)  # clamped where nothing is said
    assert spec.constraints[1].u == (0.0, "free", 1e-3)
    assert spec.constraints[2].field.origin == "min"
    assert spec.forces[0].on.point == ("max", 0.5, "max")
    assert spec.body.gravity == (0.0, -9.81, 0.0)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_the_resolved_problem_is_plain_and_reads_back_as_the_same(name):
    assert load_problem(name) is PRESETS[name]
    tree = resolved(PRESETS[name])
    assert tree["material"].pop("lam") == PRESETS[name].material.lam
    assert tree["material"].pop("mu") == PRESETS[name].material.mu
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(tree)), ProblemSpec) == PRESETS[name]


def test_the_resolved_problem_shows_defaults_that_were_not_written(tmp_path):
    tree = resolved(load_problem(written(tmp_path, '[[constraints]]\non = {plane = "x=0"}\n')))
    assert tree["material"]["nu"] == 0.3
    assert list(tree["constraints"][0]["u"]) == [0.0, 0.0, 0.0]
    assert list(tree["body"]["gravity"]) == [0.0, 0.0, 0.0]


def test_the_global_boundary_is_asked_for_only_where_a_selection_needs_it():
    needing = {name for name, spec in PRESETS.items() if needs_boundary(spec)}
    assert needing == {"bar", "patch", "manufactured"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[material]\nyoung = 1.0", r"unknown key 'young' in \[material\]"),
        ("[material]\nE = nan", r"E must be 1e-30 to 1e\+30 Pa, got nan"),
        ("[material]\nnu = 0.5", r"nu must lie between -1 and 0.5, .*, got 0.5 - at '\$.material'"),
        ('[[tractions]]\non = {plane = "x=0"}\ntraction = [1e200, 0, 0]', r"1e\+30 in size, got \(1e\+200"),
        ('[[tractions]]\non = {plane = "x=0"}\ntraction = [0, 1e-200, 0]', r"0 or 1e-30 .*got \(0, 1e-200"),
        ('[[forces]]\non = {plane = "x=0"}\nforce = [0, nan, 0]', r"must be finite.*, got \(0, nan, 0\)"),
        ('[[forces]]\non = {plane = "x=0"}\nforce = [0, 1]', "length 3"),
        ('[[tractions]]\non = {plane = "x=0"}\ntraction = [inf, 0, 0]', "traction must be finite"),
        ("[[tractions]]\non = {point = [0, 0, 0]}\ntraction = [1, 0, 0]", "not on a point"),
        ("[body]\ngravity = [0, -inf, 0]", "gravity must be finite"),
        ("[body]\nforce = [0, nan, 0]", "force must be finite"),
        ('[[constraints]]\non = {plane = "x=0"}\nu = [0, nan, 0]', "u must be finite"),
        ('[[constraints]]\non = {plane = "x=0"}\nu = [0, "fre", 0]', "Invalid enum value 'fre'"),
        (
            '[[constraints]]\non = {plane = "x=0"}\nu = [0, 0, 0]\nfield = "manufactured"',
            "u or field, not both",
        ),
        ('[[constraints]]\non = {plane = "x>0"}', "'x>0' is not understood; expected a plane such as 'x=0'"),
        ('[[constraints]]\non = {plane = "w=0"}', "plane 'w=0' is not understood"),
        ('[[constraints]]\non = {plane = "x=nan"}', "plane 'x=nan' is not understood"),
        ('[[constraints]]\non = {plane = "x=middle"}', "plane 'x=middle' is not understood"),
        ("[[constraints]]\non = {point = [0, inf, 0]}", "point must be finite"),
        ("[[constraints]]\non = {}", "exactly one of plane, tag, point, boundary"),
        ('[[constraints]]\non = {plane = "x=0", tag = "a"}', "exactly one of plane, tag, point, boundary"),
        (
            '[[constraints]]\non = {plane = "x=0"}\nfield = {gradient = [[nan,0,0],[0,0,0],[0,0,0]]}',
            "gradient must be finite",
        ),
    ],
)
def test_a_wrong_value_is_refused_in_one_line_that_names_file_and_place(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as caught:
        load_problem(written(tmp_path, text))
    assert str(caught.value).startswith(str(tmp_path / "bracket.toml"))
    assert "\n" not in str(caught.value)


def test_an_unknown_name_is_refused_with_the_presets_and_a_missing_file_by_its_name(tmp_path):
    with pytest.raises(InputError, match="unknown problem 'thesys'; expected one of corner-load, cantilever"):
        load_problem("thesys")
    with pytest.raises(InputError, match=r"cannot read .*nowhere.toml"):
        load_problem(tmp_path / "nowhere.toml")


def test_an_extent_knows_its_diagonal_centre_and_tolerance():
    extent = Extent(np.array([1.0, 0.0, 0.0]), np.array([4.0, 4.0, 12.0]))
    assert extent.diagonal == pytest.approx(13.0)
    assert extent.tolerance == pytest.approx(13e-6)
    assert extent.size == 12.0
    np.testing.assert_array_equal(extent.centre, [2.5, 2.0, 6.0])
