import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.fem.parts import WholeMesh, check_whole, whole_mesh
from fembench.fem.problem import CORNER_LOAD, PATCH, Constraint, Force, ProblemSpec, Traction
from fembench.fem.selection import Selection
from fembench.fem.survey import check, merge, survey
from fembench.mesh.box import box
from fembench.mesh.mesh import Mesh

CLAMPED = Constraint(Selection(plane="x=0"))


def problem(*, constraints=(CLAMPED,), **loads):
    return ProblemSpec(name="p", constraints=constraints, **loads)


def tagged_box():
    mesh = box(cells=(2, 2, 2), element="hex8")
    left = np.flatnonzero(mesh.x[:, 0] == 0).astype(np.int32)
    lid = mesh.cells[-1:, [4, 5, 6, 7]]
    return Mesh.create(mesh.x, mesh.cells, "hex8", node_tags={"left": left}, facet_tags={"lid": lid})


def checked(spec):
    check_whole(spec, whole_mesh(spec, tagged_box()))


def test_a_sound_problem_passes():
    checked(CORNER_LOAD)
    checked(problem(constraints=(Constraint(Selection(tag="left")),)))
    checked(problem(tractions=(Traction(Selection(tag="lid"), (1.0, 0.0, 0.0)),)))


def test_a_point_without_a_node_names_the_nearest_node():
    spec = problem(forces=(Force(Selection(point=(1.02, 0.5, 1.0)), (0.0, -1.0, 0.0)),))
    expected = r"point \(1.02, 0.5, 1\) selects no node; the nearest node is \(1, 0.5, 1\), 0.02 m away"
    with pytest.raises(InputError, match=expected):
        checked(spec)


def test_a_point_may_lie_off_its_node_by_a_millionth_of_the_diagonal():
    checked(problem(forces=(Force(Selection(point=(1 + 1.4e-6, 0.5, 1.0)), (0.0, -1.0, 0.0)),)))
    with pytest.raises(InputError, match="selects no node"):
        checked(problem(forces=(Force(Selection(point=(1 + 1.6e-6, 0.5, 1.0)), (0.0, -1.0, 0.0)),)))


def test_a_problem_that_prescribes_every_dof_is_refused():
    expected = (
        "problem 'patch': every dof of the mesh is prescribed, so nothing is left to solve; expected a finer"
    )
    for element in ("tet4", "hex8"):
        mesh = box((1, 2, 3), element)
        with pytest.raises(InputError, match=expected):
            check_whole(PATCH, whole_mesh(PATCH, mesh))
    check_whole(PATCH, whole_mesh(PATCH, box((2, 2, 2), "hex8")))  # one node inside


def test_a_plane_without_nodes_names_the_nearest():
    spec = problem(constraints=(Constraint(Selection(plane="y=0.4")),))
    with pytest.raises(InputError, match=r"plane 'y=0.4' selects no node; .*0.5, .*0.1 m away"):
        checked(spec)


def test_a_plane_that_holds_nodes_but_no_facet_of_the_boundary_takes_no_traction():
    spec = problem(tractions=(Traction(Selection(plane="x=0.5"), (1.0, 0.0, 0.0)),))
    with pytest.raises(InputError, match=r"plane 'x=0\.5' selects no facet of the boundary"):
        checked(spec)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            problem(constraints=(Constraint(Selection(tag="lft")),)),
            "unknown tag 'lft'; the nearest tag is 'left'",
        ),
        (
            problem(tractions=(Traction(Selection(tag="lidd"), (1.0, 0.0, 0.0)),)),
            "unknown facet tag 'lidd'; the nearest tag is 'lid'",
        ),
        (
            problem(tractions=(Traction(Selection(tag="left"), (1.0, 0.0, 0.0)),)),
            "unknown facet tag 'left'; the nearest tag is 'lid'",
        ),
    ],
)
def test_an_unknown_tag_names_the_nearest(spec, message):
    with pytest.raises(InputError, match=message):
        checked(spec)


def test_a_mesh_without_tags_says_so():
    spec = problem(constraints=(Constraint(Selection(tag="left")),))
    cell = box(cells=(1, 1, 1))
    bare = Mesh.create(cell.x, cell.cells, "tet4")
    with pytest.raises(InputError, match="unknown tag 'left'; the mesh has no tags"):
        check_whole(spec, whole_mesh(spec, bare))


def test_a_body_without_supports_has_no_clamped_node():
    with pytest.raises(InputError, match="problem 'p': the body can still move: 0 of 6 rigid motions"):
        checked(problem(constraints=()))


@pytest.mark.parametrize(
    ("constraints", "motions"),
    [
        ([Constraint(Selection(plane="x=0"), (0.0, "free", "free"))], 3),
        ([Constraint(Selection(point=(0.0, 0.0, 0.0)))], 3),
        ([Constraint(Selection(point=(0.0, 0.0, z))) for z in (0.0, 0.5, 1.0)], 5),
        ([Constraint(Selection(plane="x=0"), ("free", "free", "free"))], 0),
    ],
)
def test_supports_that_leave_a_motion_free_are_refused(constraints, motions):
    with pytest.raises(
        InputError, match=f"the body can still move: {motions} of 6 rigid motions are restrained"
    ):
        checked(problem(constraints=tuple(constraints)))


def test_a_point_with_two_nodes_is_refused():
    """Two unmerged copies of one node."""
    spec = problem(forces=(Force(Selection(point=(1.0, 0.5, 1.0)), (0.0, -1.0, 0.0)),))
    whole = whole_mesh(spec, box(cells=(1, 1, 1)))
    x = np.concatenate([whole.x, whole.x[-1:]])
    double = WholeMesh(whole.element, x, whole.cells, {}, {}, np.ones(len(x), dtype=bool), whole.behind)
    with pytest.raises(InputError, match="selects 2 nodes, expected one"):
        check_whole(spec, double)


def test_a_tag_that_one_rank_does_not_know_counts_as_empty_there():
    pull = Traction(Selection(tag="lid"), (1.0, 0.0, 0.0))
    spec = problem(constraints=(Constraint(Selection(tag="left")),), tractions=(pull,))
    whole = whole_mesh(spec, tagged_box())
    bare = WholeMesh(whole.element, whole.x, whole.cells, {}, {}, whole.owned_nodes, whole.behind)
    found = merge([survey(spec, g, whole.extent) for g in (bare, whole)])
    assert found.counts.tolist() == [9, 1]
    check(spec, found)


def test_a_mesh_whose_own_tag_is_called_boundary_is_refused_where_the_name_is_needed():
    mesh = box(cells=(1, 1, 1))
    own = Mesh.create(mesh.x, mesh.cells, "tet4", name="m", node_tags={"boundary": [0]})
    with pytest.raises(InputError, match="mesh 'm' has its own tag 'boundary'"):
        whole_mesh(PATCH, own)
    check_whole(CORNER_LOAD, whole_mesh(CORNER_LOAD, own))
