"""The problems that come with fembench."""

from fembench.fem.fields import LinearField
from fembench.fem.material import Material
from fembench.fem.problem import Body, Constraint, Force, ProblemSpec, Traction
from fembench.fem.selection import Selection

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
