"""Constraints and loads on the arrays of one rank (or of a whole mesh).

A `Geometry` is any object with the arrays of a rank's cells and nodes, such as a
Subdomain of `ranks`. Loads are this rank's part: body forces and tractions of its
own cells and facets, nodal forces of the nodes that it owns; the neighbour sum
completes them on shared nodes.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fembench.base.arrays import F64, I32, Mask
from fembench.base.errors import InputError
from fembench.fem.elements import body_integral, chunks, facet_shape_integral, scatter_add, shape_integral
from fembench.fem.extent import Extent
from fembench.fem.fields import Field, manufactured_body_force
from fembench.fem.materials import Material, cells_by_material, lame
from fembench.fem.problem import Constraint, ProblemSpec, prescribed_field
from fembench.fem.residual import internal_force
from fembench.fem.selection import selected, selected_facets
from fembench.kernels.backend import kernels

Facets = I32


class Nodes(Protocol):
    """What constraints need to know; tags prepared as in `selection`."""

    @property
    def x(self) -> F64: ...  # (n_nodes, 3)
    @property
    def node_tags(self) -> Mapping[str, Mask]: ...  # (n_nodes,) each


class Geometry(Nodes, Protocol):
    """What loads need to know as well."""

    @property
    def element(self) -> str: ...
    @property
    def cells(self) -> I32: ...  # (n_cells, npc)
    @property
    def facet_tags(self) -> Mapping[str, Facets]: ...  # (k, 3|4), each facet on one rank only
    @property
    def owned_nodes(self) -> Mask: ...  # (n_nodes,), each node True on one rank only
    @property
    def cell_tags(self) -> Mapping[str, Mask]: ...  # (n_cells,) each


def fixed_dofs(spec: ProblemSpec, geometry: Nodes, extent: Extent) -> Mask:
    """Which dofs are prescribed (n_nodes, 3)."""
    mask = np.zeros_like(geometry.x, dtype=bool)
    for nodes, components, _ in _constrained(spec, geometry, extent):
        mask[nodes[:, None], components] = True
    return mask


def prescribed(spec: ProblemSpec, geometry: Nodes, extent: Extent) -> F64:
    """(n_nodes, 3) the displacements of prescribed dofs in m, else 0."""
    values = np.zeros_like(geometry.x)
    for nodes, components, u in _constrained(spec, geometry, extent):
        values[nodes[:, None], components] = u[:, components]
    return values


def _constrained(
    spec: ProblemSpec, geometry: Nodes, extent: Extent
) -> Iterator[tuple[NDArray[np.intp], list[int], F64]]:
    """Of each constraint: nodes (n,), components that it holds, displacements (n, 3)."""
    for constraint in spec.constraints:
        nodes = np.flatnonzero(selected(constraint.on, geometry.x, geometry.node_tags, extent))
        yield (nodes, *_prescribed(constraint, geometry.x[nodes], extent))


def local_load(spec: ProblemSpec, geometry: Geometry, extent: Extent) -> F64:
    """f (n_nodes, 3) in N: this rank's part of the nodal, surface and body loads."""
    masks = (selected(load.on, geometry.x, geometry.node_tags, extent) for load in spec.forces)
    loaded = [np.flatnonzero(mask & geometry.owned_nodes) for mask in masks]  # few nodes
    f = np.zeros_like(geometry.x)
    for load, nodes in zip(spec.forces, loaded):
        f[nodes] += load.force
    for pull in spec.tractions:
        facets = selected_facets(pull.on, geometry.x, geometry.facet_tags, extent)
        if len(facets):
            areas = facet_shape_integral(geometry.x[facets])
            scatter_add(f, facets, areas[:, :, None] * np.array(pull.traction))
    for material, here in cells_by_material(spec, geometry):
        density = body_density(spec, material, extent)
        if density is not None:
            add = _add_body_load if spec.body.field else _add_weight
            add(f, geometry, geometry.cells[here], density)
    return f


def _add_weight(f: F64, geometry: Geometry, cells: Facets, density: Field) -> None:
    """Add to f (n_nodes, 3) in N a constant body force in these cells, by volumes."""
    constant = density(geometry.x[:1])[0].copy()
    if geometry.element == "tet4":
        bad = kernels.add_weights(geometry.x, cells, constant, f)
        if bad:
            raise InputError(f"{bad} of {len(cells)} tet4 cells are inverted or degenerate (det J <= 0)")
        return
    for chunk in chunks(len(cells)):
        nodes = cells[chunk]
        volumes = shape_integral(geometry.x[nodes], geometry.element)
        for k in np.flatnonzero(constant):
            scatter_add(f[:, k : k + 1], nodes, constant[k] * volumes[:, :, None])


def _add_body_load(f: F64, geometry: Geometry, cells: Facets, density: Field) -> None:
    """Add to f (n_nodes, 3) in N the body force in these cells."""
    for chunk in chunks(len(cells)):
        nodes = cells[chunk]
        scatter_add(f, nodes, body_integral(geometry.x[nodes], geometry.element, density))


def right_hand_side(spec: ProblemSpec, geometry: Geometry, extent: Extent) -> F64:
    """f - A u_D (n_nodes, 3) in N, zero on prescribed dofs: the rank's reduced load."""
    held = list(_constrained(spec, geometry, extent))  # few nodes
    f = local_load(spec, geometry, extent)
    if any(u[:, components].any() for _, components, u in held):
        moduli = lame(spec, geometry)
        values = prescribed(spec, geometry, extent)
        f -= internal_force(geometry.x, geometry.cells, geometry.element, *moduli, values)
    for nodes, components, _ in held:
        f[nodes[:, None], components] = 0.0
    return f


def body_density(spec: ProblemSpec, material: Material, extent: Extent) -> Field | None:
    """Points (n, 3) -> body force (n, 3) in N/m³ in cells of a material; None without."""
    constant = np.array(spec.body.force) + material.rho * np.array(spec.body.gravity)
    if spec.body.field is None:
        return (lambda x: np.broadcast_to(constant, x.shape)) if constant.any() else None
    wave = manufactured_body_force(extent, material.lam, material.mu)
    return lambda x: wave(x) + constant


def _prescribed(constraint: Constraint, x: F64, extent: Extent) -> tuple[list[int], F64]:
    """The components (of 0, 1, 2) that a constraint holds; displacements (n, 3) at x."""
    if constraint.field is not None:
        return [0, 1, 2], prescribed_field(constraint.field, extent)(x)
    u = constraint.u or (0.0, 0.0, 0.0)
    components = [i for i, value in enumerate(u) if value != "free"]
    row = np.array([0.0 if isinstance(value, str) else value for value in u])
    return components, np.broadcast_to(row, x.shape)
