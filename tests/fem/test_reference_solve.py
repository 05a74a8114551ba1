import numpy as np
import pytest
from fem_meshes import ELEMENTS, distorted, l2_error

from fembench.base.errors import InputError
from fembench.fem.boundary import local_load
from fembench.fem.elements import cell_stress
from fembench.fem.extent import extent_of
from fembench.fem.parts import solve, whole_mesh
from fembench.fem.problem import (
    BAR,
    CANTILEVER,
    CORNER_LOAD,
    GRAVITY,
    MANUFACTURED,
    PATCH,
    ProblemSpec,
    exact_solution,
)
from fembench.fem.residual import internal_force
from fembench.mesh.box import box


def force_of(spec, mesh, u):
    return internal_force(mesh.x, mesh.cells, mesh.element, spec.material.lam, spec.material.mu, u)


@pytest.mark.row("004:F1")
@pytest.mark.parametrize(
    ("cells", "deflection"),
    [((6, 4, 6), -1.3557948543e-07), ((12, 5, 11), -1.945452699e-07), ((13, 9, 13), -2.264046862e-07)],
)
def test_the_stand_ins_deflect_as_the_published_verification_values(cells, deflection):
    """The first to all digits of its direct solution."""
    mesh = box(cells=cells, element="tet4", lengths=(1.0, 0.5, 1.0))
    u = solve(CORNER_LOAD, mesh)
    loaded = np.all(mesh.x == [1.0, 0.5, 1.0], axis=1)
    assert u[loaded, 1].item() == pytest.approx(deflection, rel=1e-9)
    clamped = mesh.x[:, 0] == 0
    np.testing.assert_allclose(force_of(CORNER_LOAD, mesh, u)[clamped].sum(axis=0), [0, 500, 0], atol=1e-7)


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("spec", [PATCH, BAR], ids=lambda s: s.name)
def test_linear_solutions_are_met_on_distorted_cells(spec, element):
    mesh = distorted(element, lengths=(1.5, 0.5, 1.0))
    exact = exact_solution(spec, extent_of(mesh.x))(mesh.x)
    u = solve(spec, mesh)
    assert np.abs(u - exact).max() < 1e-10 * np.abs(exact).max()


def test_the_bar_is_met_on_a_box_away_from_the_origin():
    mesh = distorted("tet4")
    moved = type(mesh).create(mesh.x + [3.0, -2.0, 1.0], mesh.cells, "tet4")
    exact = exact_solution(BAR, extent_of(moved.x))(moved.x)
    u = solve(BAR, moved)
    assert np.abs(u - exact).max() < 1e-10 * np.abs(exact).max()
    sigma = cell_stress(moved.x, moved.cells, "tet4", BAR.material.lam, BAR.material.mu, u)
    np.testing.assert_allclose(sigma, np.tile([1e6, 0, 0, 0, 0, 0], (moved.n_cells, 1)), atol=1e-3)


@pytest.mark.parametrize("element", ELEMENTS)
def test_the_manufactured_solution_is_approached_with_second_order(element):
    errors = []
    for n in (4, 8):
        mesh = box(cells=(2 * n, n, 2 * n), element=element, lengths=(1.0, 0.5, 1.0))
        exact = exact_solution(MANUFACTURED, extent_of(mesh.x))
        errors.append(l2_error(mesh, solve(MANUFACTURED, mesh), exact))
    assert errors[1] < 0.01
    assert 1.8 <= np.log2(errors[0] / errors[1]) <= 2.2


@pytest.mark.parametrize("element", ELEMENTS)
def test_the_clamped_face_of_the_cantilever_carries_its_weight_and_its_moment(element):
    mesh = distorted(element)
    u = solve(CANTILEVER, mesh)
    clamped = mesh.x[:, 0] == 0
    weight = 7850 * GRAVITY * 0.5
    load = local_load(CANTILEVER, whole_mesh(CANTILEVER, mesh), extent_of(mesh.x))
    held = (force_of(CANTILEVER, mesh, u) - load)[clamped]
    np.testing.assert_allclose(held.sum(axis=0), [0, weight, 0], atol=1e-9 * weight)
    moment = np.cross(mesh.x[clamped], held).sum(axis=0)
    assert moment[2] == pytest.approx(0.5 * weight, rel=1e-9)  # the weight acts half a metre out
    assert np.all(u[mesh.x[:, 0] == 1.0, 1] < 0)


def test_a_problem_without_supports_is_refused_before_it_is_solved():
    with pytest.raises(InputError, match="the body can still move"):
        solve(ProblemSpec(name="floating"), box(cells=(1, 1, 1)))
