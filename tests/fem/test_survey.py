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


def held(**on):
    return problem(constraints=(Constraint(Selection(**on)),))


def pulled(**on):
    return problem(tractions=(Traction(Selection(**on), (1.0, 0.0, 0.0)),))


def loaded(x, y=0.5, z=1.0):
    return problem(forces=(Force(Selection(point=(x, y, z)), (0.0, -1.0, 0.0)),))


def freed(*constraints):
    return problem(constraints=constraints)


ROLLERS = Constraint(Selection(plane="x=0"), (0.0, "free", "free"))
NOTHING = Constraint(Selection(plane="x=0"), ("free", "free", "free"))
LINE = [Constraint(Selection(point=(0.0, 0.0, z))) for z in (0.0, 0.5, 1.0)]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            loaded(1.02),
            r"point \(1.02, 0.5, 1\) selects no node; the nearest node is \(1, 0.5, 1\), 0.02 m away",
        ),
        (loaded(1 + 1.6e-6), "selects no node"),
        (held(plane="y=0.4"), r"plane 'y=0.4' selects no node; .*0.5, .*0.1 m away"),
        (pulled(plane="x=0.5"), r"plane 'x=0\.5' selects no facet of the boundary"),
        (held(tag="lft"), "unknown tag 'lft'; the nearest tag is 'left'"),
        (pulled(tag="lidd"), "unknown facet tag 'lidd'; the nearest tag is 'lid'"),
        (pulled(tag="left"), "unknown facet tag 'left'; the nearest tag is 'lid'"),
        (freed(), "problem 'p': the body can still move: 0 of 6 rigid motions are restrained"),
        (freed(ROLLERS), "the body can still move: 3 of 6 rigid motions are restrained"),
        (freed(LINE[0]), "the body can still move: 3 of 6 rigid motions are restrained"),
        (freed(*LINE), "the body can still move: 5 of 6 rigid motions are restrained"),
        (freed(NOTHING), "the body can still move: 0 of 6 rigid motions are restrained"),
    ],
)
def test_what_selects_nothing_or_leaves_the_body_free_is_refused(spec, message):
    with pytest.raises(InputError, match=message):
        checked(spec)


@pytest.mark.parametrize("spec", [CORNER_LOAD, held(tag="left"), pulled(tag="lid"), loaded(1 + 1.4e-6)])
def test_a_sound_problem_passes_whose_point_lies_off_its_node_by_a_millionth_of_the_diagonal(spec):
    checked(spec)


def test_a_problem_that_prescribes_every_dof_is_refused():
    expected = (
        "problem 'patch': every dof of the mesh is prescribed, so nothing is left to solve; expected a finer"
    )
    for element in ("tet4", "hex8"):
        mesh = box((1, 2, 3), element)
        with pytest.raises(InputError, match=expected):
            check_whole(PATCH, whole_mesh(PATCH, mesh))
    check_whole(PATCH, whole_mesh(PATCH, box((2, 2, 2), "hex8")))  # one node inside


def test_a_mesh_without_tags_says_so():
    cell, spec = box(cells=(1, 1, 1)), held(tag="left")
    with pytest.raises(InputError, match="unknown tag 'left'; the mesh has no tags"):
        check_whole(spec, whole_mesh(spec, Mesh.create(cell.x, cell.cells, "tet4")))


def test_a_point_with_two_nodes_is_refused():
    """Two unmerged copies of one node."""
    spec = loaded(1.0)
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
