"""ProblemSpec: material, constraints and loads, from a preset or a TOML file.

    name = "bracket"
    [material]
    E = 210e9
    nu = 0.3
    [materials.core]                          # of the cells that the mesh tags "core"
    E = 1e9
    [[constraints]]
    on = {plane = "x=0"}                      # or {tag = "left"}, {point = [0, 0, "max"]}, {boundary = true}
    u = [0.0, 0.0, "free"]                    # or field = {gradient = [[…], […], […]]}; default: clamped
    [[forces]]
    on = {point = ["max", "max", "max"]}
    force = [0.0, -500.0, 0.0]                # N on each node selected
    [[tractions]]
    on = {plane = "x=max"}
    traction = [1e6, 0.0, 0.0]                # N/m² on the facets of the boundary selected
    [body]
    gravity = [0.0, -9.80665, 0.0]            # m/s², times rho; or force = […] in N/m³

If two constraints act on one dof, the later one wins.

The problems that come with fembench."""

import os
from pathlib import Path
from typing import Any, Literal

import msgspec

from fembench.base.config import read_toml
from fembench.base.errors import InputError
from fembench.fem import fields
from fembench.fem.checks import SpecError, Vector, in_range
from fembench.fem.extent import Extent
from fembench.fem.fields import Field, LinearField
from fembench.fem.materials import Material
from fembench.fem.selection import Selection

Component = float | Literal["free"]
AnyField = LinearField | Literal["manufactured"]


class Constraint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prescribed displacements of the selected nodes: per component `u` (m), or a `field`."""

    on: Selection
    u: tuple[Component, Component, Component] | None = None  # None without a field: clamped
    field: AnyField | None = None

    def __post_init__(self) -> None:
        if self.field is not None and self.u is not None:
            raise SpecError("a constraint takes u or field, not both")
        if self.field is None and self.u is None:
            msgspec.structs.force_setattr(self, "u", (0.0, 0.0, 0.0))
        in_range("u", [value for value in self.u or () if not isinstance(value, str)])


class Force(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A force in N on each selected node, applied once however many ranks share the node."""

    on: Selection
    force: Vector

    def __post_init__(self) -> None:
        in_range("force", self.force)


class Traction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A force per area in N/m² on the selected facets."""

    on: Selection
    traction: Vector

    def __post_init__(self) -> None:
        in_range("traction", self.traction)
        if self.on.point is not None:
            raise SpecError("a traction acts on a plane, a tag or the boundary, not on a point")


class Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body force: `force` in N/m³ plus rho times `gravity` in m/s², or that of a `field`."""

    force: Vector = (0.0, 0.0, 0.0)
    gravity: Vector = (0.0, 0.0, 0.0)
    field: Literal["manufactured"] | None = None

    def __post_init__(self) -> None:
        in_range("force", self.force)
        in_range("gravity", self.gravity)


class ProblemSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything about a run but the mesh. `exact`: the displacement, if it is known."""

    name: str = ""
    material: Material = Material()
    materials: dict[str, Material] = {}  # by cell tag; `material`: of all other cells
    constraints: tuple[Constraint, ...] = ()
    forces: tuple[Force, ...] = ()
    tractions: tuple[Traction, ...] = ()
    body: Body = Body()
    exact: AnyField | None = None

    def __post_init__(self) -> None:
        if self.materials and self.body.field is not None:
            raise SpecError("a manufactured body force is that of one material; expected no materials by tag")


def load_problem(name_or_path: str | Path) -> ProblemSpec:
    """The preset of that name, or the problem in that TOML file. Raises InputError."""
    name, path = str(name_or_path), Path(name_or_path)
    if name in PRESETS:
        return PRESETS[name]
    if path.suffix != ".toml" and not os.path.exists(path):
        raise InputError(f"unknown problem '{name}'; expected one of {', '.join(PRESETS)}, or a TOML file")
    spec = read_toml(path, ProblemSpec)
    return spec if spec.name else msgspec.structs.replace(spec, name=path.stem)


def resolved(spec: ProblemSpec) -> dict[str, Any]:
    """Plain values of every field, defaults too, for the record; with lam and mu."""
    tree = msgspec.to_builtins(spec)
    tree["material"] |= {"lam": spec.material.lam, "mu": spec.material.mu}
    if not spec.materials:
        del tree["materials"]  # as in records from before there were several
    return tree


def needs_boundary(spec: ProblemSpec) -> bool:
    """Whether the facets and nodes of the whole mesh's boundary must be known."""
    on_nodes, on_facets = selections(spec)
    return any(on.boundary for on in on_nodes) or any(on.tag is None for on in on_facets)


def selections(spec: ProblemSpec) -> tuple[list[Selection], list[Selection]]:
    """Those of nodes (constraints, then forces) and those of facets (tractions)."""
    return [c.on for c in spec.constraints] + [f.on for f in spec.forces], [t.on for t in spec.tractions]


def prescribed_field(field: AnyField, extent: Extent) -> Field:
    """The displacement field of a constraint or of `exact` as a function of points (n, 3)."""
    return fields.manufactured(extent) if field == "manufactured" else field.at(extent)


def exact_solution(spec: ProblemSpec, extent: Extent) -> Field | None:
    """The exact displacement, points (n, 3) -> (n, 3) in m, where the problem has one."""
    return None if spec.exact is None else prescribed_field(spec.exact, extent)


STEEL = Material(E=210e9, nu=0.3, rho=7850.0)
GRAVITY = 9.80665  # m/s²
TENSION = 1e6  # Pa, of the bar
_STRAIN = TENSION / STEEL.E
_CONTRACTION = -STEEL.nu * _STRAIN
_PATCH_FIELD = LinearField(
    gradient=((1.1e-3, -0.4e-3, 0.3e-3), (0.7e-3, -0.9e-3, 0.5e-3), (-0.2e-3, 0.6e-3, 0.8e-3)),
    constant=(1e-3, -2e-3, 0.5e-3),
)
_BOUNDARY = Selection(boundary=True)

CORNER_LOAD = ProblemSpec(
    name="corner-load",
    material=STEEL,
    constraints=(Constraint(Selection(plane="x=0")),),
    forces=(Force(Selection(point=(1.0, 0.5, 1.0)), (0.0, -500.0, 0.0)),),
)
CANTILEVER = ProblemSpec(
    name="cantilever",
    material=STEEL,
    constraints=(Constraint(Selection(plane="x=min")),),
    body=Body(gravity=(0.0, -GRAVITY, 0.0)),
)
# rollers on three sides: uniaxial tension, exact for linear elements on any box
BAR = ProblemSpec(
    name="bar",
    material=STEEL,
    constraints=(
        Constraint(Selection(plane="x=min"), (0.0, "free", "free")),
        Constraint(Selection(plane="y=min"), ("free", 0.0, "free")),
        Constraint(Selection(plane="z=min"), ("free", "free", 0.0)),
    ),
    tractions=(Traction(Selection(plane="x=max"), (TENSION, 0.0, 0.0)),),
    exact=LinearField(
        gradient=((_STRAIN, 0.0, 0.0), (0.0, _CONTRACTION, 0.0), (0.0, 0.0, _CONTRACTION)), origin="min"
    ),
)
PATCH = ProblemSpec(
    name="patch",
    material=STEEL,
    constraints=(Constraint(_BOUNDARY, field=_PATCH_FIELD),),
    exact=_PATCH_FIELD,
)
MANUFACTURED = ProblemSpec(
    name="manufactured",
    material=STEEL,
    constraints=(Constraint(_BOUNDARY, field="manufactured"),),
    body=Body(field="manufactured"),
    exact="manufactured",
)
PRESETS = {spec.name: spec for spec in (CORNER_LOAD, CANTILEVER, BAR, PATCH, MANUFACTURED)}
