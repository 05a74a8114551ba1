"""How far a solution is from an exact one, by quadrature of degree 5 or better."""

import numpy as np

from fembench.base.arrays import F64, I32
from fembench.fem.elements import chunks, interpolated, measures
from fembench.fem.fields import Field
from fembench.fem.shapes import element_named


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
