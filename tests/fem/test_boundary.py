import numpy as np
import pytest
from fem_meshes import ELEMENTS, distorted, parts_of

from fembench.fem.boundary import body_density, fixed_dofs, local_load, prescribed, right_hand_side
from fembench.fem.elements import body_integral, scatter_add
from fembench.fem.extent import extent_of
from fembench.fem.fields import manufactured_body_force
from fembench.fem.parts import whole_mesh
from fembench.fem.problem import (
    BAR,
    CANTILEVER,
    CORNER_LOAD,
    GRAVITY,
    MANUFACTURED,
    PATCH,
    PRESETS,
    Body,
    Constraint,
    Force,
    ProblemSpec,
)
from fembench.fem.selection import Selection
from fembench.fem.survey import check, merge, survey
from fembench.mesh.box import box


def prepared(spec, element="tet4", **options):
    geometry = whole_mesh(spec, distorted(element, **options))
    return geometry, geometry.extent


@pytest.mark.row("004:2.1")
def test_the_corner_load_clamps_a_face_and_loads_one_vertex():
    geometry, extent = prepared(CORNER_LOAD)
    mask = fixed_dofs(CORNER_LOAD, geometry, extent)
    np.testing.assert_array_equal(mask, np.repeat((geometry.x[:, 0] == 0)[:, None], 3, axis=1))
    assert not prescribed(CORNER_LOAD, geometry, extent).any()
    f = local_load(CORNER_LOAD, geometry, extent)
    loaded = np.flatnonzero(f.any(axis=1))
    np.testing.assert_array_equal(geometry.x[loaded], [[1.0, 0.5, 1.0]])
    np.testing.assert_array_equal(f[loaded], [[0.0, -500.0, 0.0]])


@pytest.mark.parametrize("element", ELEMENTS)
def test_gravity_adds_up_to_the_weight(element):
    geometry, extent = prepared(CANTILEVER, element)
    total = local_load(CANTILEVER, geometry, extent).sum(axis=0)
    np.testing.assert_allclose(total, [0, -7850 * GRAVITY * 0.5, 0], rtol=1e-12)


@pytest.mark.parametrize("element", ELEMENTS)
def test_a_traction_adds_up_to_its_area_and_acts_on_the_far_face_alone(element):
    geometry, extent = prepared(BAR, element, lengths=(2.0, 0.5, 3.0))
    f = local_load(BAR, geometry, extent)
    np.testing.assert_allclose(f.sum(axis=0), [1e6 * 1.5, 0, 0], rtol=1e-12)
    assert not f[geometry.x[:, 0] < 2.0].any()


def test_rollers_hold_one_component_each():
    geometry, extent = prepared(BAR)
    mask = fixed_dofs(BAR, geometry, extent)
    np.testing.assert_array_equal(mask, np.isclose(geometry.x, 0.0))


def test_the_whole_boundary_takes_the_values_of_the_field():
    geometry, extent = prepared(PATCH)
    mask, values = fixed_dofs(PATCH, geometry, extent), prescribed(PATCH, geometry, extent)
    x = geometry.x
    on_side = np.any(np.isclose(x, 0) | np.isclose(x, [1, 0.5, 1]), axis=1)
    np.testing.assert_array_equal(mask.all(axis=1), on_side)
    field = PATCH.exact
    expected = np.array(field.constant) + x @ np.array(field.gradient).T
    np.testing.assert_allclose(values[on_side], expected[on_side], rtol=1e-14)
    assert not values[~on_side].any()


def test_of_two_constraints_on_one_dof_the_later_holds():
    spec = ProblemSpec(
        constraints=(
            Constraint(Selection(plane="x=0"), (1.0, 1.0, "free")),
            Constraint(Selection(plane="y=0"), ("free", 2.0, "free")),
        )
    )
    geometry, extent = prepared(spec)
    mask, values = fixed_dofs(spec, geometry, extent), prescribed(spec, geometry, extent)
    edge = np.isclose(geometry.x[:, :2], 0).all(axis=1)
    np.testing.assert_array_equal(values[edge], np.tile([1.0, 2.0, 0.0], (edge.sum(), 1)))
    assert not mask[:, 2].any()


def test_the_right_hand_side_is_zero_on_prescribed_dofs_and_carries_their_displacements_elsewhere():
    geometry, extent = prepared(PATCH)
    mask = fixed_dofs(PATCH, geometry, extent)
    f = right_hand_side(PATCH, geometry, extent)
    assert not f[mask].any()
    assert np.abs(f[~mask]).max() > 0


def test_a_tag_of_facets_selects_their_nodes_and_a_tag_of_nodes_its_own():
    mesh = box(cells=(2, 2, 2), element="hex8")
    top = np.flatnonzero(np.isclose(mesh.x[:, 2], 1.0)).astype(np.int32)
    tagged = type(mesh).create(
        mesh.x, mesh.cells, "hex8", node_tags={"top": top}, facet_tags={"one": mesh.cells[:1, [0, 3, 2, 1]]}
    )
    for tag, nodes in (("top", top), ("one", np.sort(mesh.cells[0, [0, 1, 2, 3]]))):
        spec = ProblemSpec(forces=(Force(Selection(tag=tag), (1.0, 0.0, 0.0)),))
        geometry = whole_mesh(spec, tagged)
        f = local_load(spec, geometry, geometry.extent)
        np.testing.assert_array_equal(np.flatnonzero(f.any(axis=1)), nodes)


def test_a_tag_of_both_kinds_selects_the_nodes_of_both():
    mesh = box(cells=(1, 1, 1), element="hex8")
    both = type(mesh).create(
        mesh.x, mesh.cells, "hex8", node_tags={"a": [7]}, facet_tags={"a": mesh.cells[:, [0, 3, 2, 1]]}
    )
    np.testing.assert_array_equal(
        np.flatnonzero(whole_mesh(CORNER_LOAD, both).node_tags["a"]), [0, 1, 2, 3, 7]
    )


def test_two_forces_on_one_node_add_up():
    corner = Selection(point=("max", "max", "max"))
    spec = ProblemSpec(forces=(Force(corner, (1.0, 0.0, 2.0)), Force(corner, (3.0, 4.0, 0.0))))
    geometry, extent = prepared(spec)
    f = local_load(spec, geometry, extent)
    np.testing.assert_array_equal(f[f.any(axis=1)], [[4.0, 4.0, 2.0]])


def test_a_body_force_is_the_sum_of_its_field_its_constant_and_its_weight():
    spec = ProblemSpec(body=Body(force=(1.0, 2.0, 3.0), gravity=(0.0, 0.0, -2.0), field="manufactured"))
    geometry, extent = prepared(spec)
    wave = manufactured_body_force(extent, spec.material.lam, spec.material.mu)(geometry.x)
    density = body_density(spec, spec.material, extent)(geometry.x)
    np.testing.assert_allclose(density - wave, np.tile([1, 2, 3 - 2 * 7850.0], (len(wave), 1)), atol=1e-6)


@pytest.mark.parametrize("element", ["tet4", "hex8"])
def test_a_constant_body_force_is_the_integral_of_a_field_that_is_constant(element):
    geometry, extent = prepared(CANTILEVER, element)
    density = body_density(CANTILEVER, CANTILEVER.material, extent)
    expected = np.zeros_like(geometry.x)
    scatter_add(expected, geometry.cells, body_integral(geometry.x[geometry.cells], element, density))
    np.testing.assert_allclose(local_load(CANTILEVER, geometry, extent), expected, rtol=1e-13)


def summed(parts, arrays, n_nodes):
    total = np.zeros((n_nodes, 3))
    for part, array in zip(parts, arrays):
        total[part.global_nodes] += array
    return total


LINE_LOAD = ProblemSpec(
    name="line load",
    constraints=(Constraint(Selection(plane="x=min")),),
    forces=(Force(Selection(plane="x=max"), (1.0, -2.0, 3.0)),),  # parts share nodes of this plane
)
SPECS = {"line load": LINE_LOAD, **PRESETS}


@pytest.mark.parametrize("n_parts", [2, 3, 5])
@pytest.mark.parametrize("name", sorted(SPECS))
def test_the_loads_of_the_parts_add_up_to_those_of_the_whole_and_each_prescribes_the_same(name, n_parts):
    spec = SPECS[name]
    whole, parts = parts_of(spec, distorted("tet4"), n_parts)
    extent = extent_of(np.concatenate([p.x for p in parts]))
    for load in (local_load, right_hand_side):
        expected = load(spec, whole, whole.extent)
        found = summed(parts, [load(spec, p, extent) for p in parts], len(whole.x))
        np.testing.assert_allclose(found, expected, atol=1e-12 * max(np.abs(expected).max(), 1e-300))
    for found in (fixed_dofs, prescribed):
        expected = found(spec, whole, whole.extent)
        for part in parts:
            np.testing.assert_array_equal(found(spec, part, whole.extent), expected[part.global_nodes])


@pytest.mark.parametrize("name", sorted(SPECS))
def test_the_surveys_of_the_parts_merge_to_that_of_the_whole(name):
    spec = SPECS[name]
    whole, parts = parts_of(spec, distorted("tet4"), 4)
    expected = survey(spec, whole, whole.extent)
    found = merge([survey(spec, p, whole.extent) for p in parts])
    check(spec, found)
    np.testing.assert_array_equal(found.counts, expected.counts)
    np.testing.assert_array_equal(found.distance, expected.distance)
    near = np.isfinite(found.distance)
    np.testing.assert_allclose(found.restrained_gram, expected.restrained_gram, rtol=1e-12, atol=1e-12)
    assert near.any() or name in ("patch", "manufactured")


def test_the_manufactured_force_uses_the_extent_of_the_whole_mesh_on_every_part():
    whole, parts = parts_of(MANUFACTURED, distorted("hex8"), 2)
    own = local_load(MANUFACTURED, parts[1], whole.extent)
    wrong = local_load(MANUFACTURED, parts[1], extent_of(parts[1].x))
    assert not np.allclose(own, wrong)
