"""Displacement fields in closed form: linear ones, and the manufactured solution.

The manufactured solution is a sum of three plane waves, with s = (x - lo) / L, L the
longest edge of the box and displacements of about L / 1000:

    u(x) = L Σ_m p_m sin(k_m · s + phi_m),     phi without symmetry, which could hide an error;
    b(x) = -div sigma = Σ_m [(lam + mu)(k_m · p_m) k_m + mu |k_m|² p_m] / L · sin(k_m · s + phi_m).

How far a solution is from an exact one: by quadrature of degree 5 or better.
"""

from collections.abc import Callable
from typing import Literal

import msgspec
import numpy as np

from fembench.base.arrays import F64, I32
from fembench.fem.checks import Vector, in_range
from fembench.fem.elements import chunks, interpolated, measures
from fembench.fem.extent import Extent
from fembench.fem.shapes import element_named

Field = Callable[[F64], F64]  # points (n, 3) m -> displacements (n, 3) m, or N/m³

_AMPLITUDES = 1e-3 * np.array([[0.5, -0.3, 0.2], [-0.2, 0.4, 0.3], [0.1, 0.3, -0.5]])  # p_m
_WAVES = np.array([[2.1, 1.3, -0.7], [-1.1, 2.3, 1.7], [1.9, -0.8, 2.2]])  # k_m
_PHASES = np.array([0.3, 1.1, -0.6])


class LinearField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """u = constant + gradient (x - origin); the origin is 0 or the mesh's lower corner."""

    gradient: tuple[Vector, Vector, Vector]
    constant: Vector = (0.0, 0.0, 0.0)
    origin: Literal["zero", "min"] = "zero"

    def __post_init__(self) -> None:
        in_range("gradient", sum(self.gradient, ()))
        in_range("constant", self.constant)

    def at(self, extent: Extent) -> Field:
        """The field as a function of points."""
        G = np.array(self.gradient)
        c = np.array(self.constant)
        origin = extent.lo if self.origin == "min" else np.zeros(3)
        return lambda x: c + (x - origin) @ G.T


def manufactured(extent: Extent) -> Field:
    """The manufactured displacement, m."""
    return lambda x: extent.size * _waves(x, extent) @ _AMPLITUDES


def manufactured_body_force(extent: Extent, lam: float, mu: float) -> Field:
    """-div sigma of the manufactured displacement, N/m³."""
    along = np.sum(_WAVES * _AMPLITUDES, axis=1, keepdims=True) * _WAVES
    square = np.sum(_WAVES**2, axis=1, keepdims=True)
    force = ((lam + mu) * along + mu * square * _AMPLITUDES) / extent.size
    return lambda x: _waves(x, extent) @ force


def _waves(x: F64, extent: Extent) -> F64:
    """(n, 3) the sine of each wave."""
    return np.sin((x - extent.lo) / extent.size @ _WAVES.T + _PHASES)


def l2_squares(x: F64, cells: I32, element: str, u: F64, exact: Field) -> tuple[float, float]:
    """The integrals of |u - exact|² and |exact|² over these cells."""
    rule = element_named(element).fine_rule
    error = norm = 0.0
    for chunk in chunks(len(cells)):
        nodes = cells[chunk]
        dV = measures(x[nodes], element, rule)
        points = interpolated(x[nodes], element, rule)
        there = exact(points.reshape(-1, 3)).reshape(points.shape)
        miss = interpolated(u[nodes], element, rule) - there
        error += float(np.vdot(dV, np.sum(miss**2, axis=2)))
        norm += float(np.vdot(dV, np.sum(there**2, axis=2)))
    return error, norm
