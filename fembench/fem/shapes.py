"""Reference elements: shape functions N, their slopes dN/dxi, and quadrature rules.

tet4 lives on 0 <= xi, eta, zeta, xi + eta + zeta <= 1; hex8 on [-1, 1]³ with
nodes in VTK's order (0..3 the bottom counter-clockwise, 4..7 above them).
Facets: tri3 on the unit triangle, quad4 on [-1, 1]². Source: K.-J. Bathe, Finite
Element Procedures, 5.3 and 5.5.
"""

import itertools
from collections.abc import Callable
from functools import partial

import numpy as np
from msgspec import Struct

from fembench.base.arrays import F64
from fembench.base.errors import InputError

HEX_CORNERS = np.array(
    [[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1], [-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]],
    dtype=np.float64,
)
QUAD_CORNERS = HEX_CORNERS[:4, :2].copy()
GAUSS = {  # points on [-1, 1] and weights, by number of points
    2: (np.array([-1, 1]) / np.sqrt(3), np.ones(2)),
    3: (np.array([-1, 0, 1]) * np.sqrt(3 / 5), np.array([5, 8, 5]) / 9),
}


class QuadratureRule(Struct, frozen=True):
    """Quadrature: `points` (n_q, dim), `weights` (n_q,) that sum to the measure."""

    points: F64
    weights: F64


class ReferenceElement(Struct, frozen=True):
    """A reference element; `shape` and `slope` take points (n_q, dim)."""

    name: str
    n_nodes: int
    shape: Callable[[F64], F64]  # -> N (n_q, n_nodes)
    slope: Callable[[F64], F64]  # -> dN/dxi (n_q, n_nodes, dim)
    stiffness_rule: QuadratureRule  # exact for the stiffness (hex8: of a parallelepiped)
    load_rule: QuadratureRule  # at least degree 2: body forces, tractions
    fine_rule: QuadratureRule  # degree 5 or better: error norms

    @property
    def affine(self) -> bool:
        """Whether J is constant in the cell: simplices."""
        return self.n_nodes == self.load_rule.points.shape[1] + 1


def _linear_shape(xi: F64) -> F64:
    """N of the simplex of any dimension."""
    return np.concatenate([1 - xi.sum(axis=1, keepdims=True), xi], axis=1)


def _linear_slope(xi: F64) -> F64:
    dim = xi.shape[1]
    slope = np.concatenate([-np.ones((1, dim)), np.eye(dim)])
    return np.tile(slope, (len(xi), 1, 1))


def _multilinear_shape(xi: F64, corners: F64) -> F64:
    """N_a = prod_d (1 + xi_d c_ad) / 2."""
    return np.prod((1 + xi[:, None, :] * corners) / 2, axis=2)


def _multilinear_slope(xi: F64, corners: F64) -> F64:
    factors = (1 + xi[:, None, :] * corners) / 2
    slope = np.empty_like(factors)
    for d in range(corners.shape[1]):
        others = np.delete(factors, d, axis=2)
        slope[:, :, d] = corners[:, d] / 2 * np.prod(others, axis=2)
    return slope


def _gauss(n: int, dim: int) -> QuadratureRule:
    """Gauss-Legendre with n points per direction on [-1, 1]^dim: degree 2n - 1."""
    p, w = GAUSS[n]
    points = np.stack(np.meshgrid(*[p] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    weights = np.prod(np.stack(np.meshgrid(*[w] * dim, indexing="ij"), axis=-1), axis=-1).ravel()
    return QuadratureRule(points, weights)


def _tet_degree_2() -> QuadratureRule:
    a, b = (5 - np.sqrt(5)) / 20, (5 + 3 * np.sqrt(5)) / 20
    return QuadratureRule(np.full((4, 3), a) + (b - a) * np.eye(4)[:, :3], np.full(4, 1 / 24))


def _tet_degree_5() -> QuadratureRule:
    """14 points: N. J. Walkington, Quadrature on simplices of arbitrary dimension (2000)."""
    faces = [
        (0.31088591926330060980, 0.11268792571801585080),
        (0.092735250310891226402, 0.073493043116361949544),
    ]
    points = [np.full((4, 3), a) + (1 - 4 * a) * np.eye(4)[:, :3] for a, _ in faces]
    a = 0.045503704125649649492
    edges = np.full((6, 4), a)
    for row, pair in zip(edges, itertools.combinations(range(4), 2)):
        row[list(pair)] = 0.5 - a
    weights = [np.full(4, w / 6) for _, w in faces]
    return QuadratureRule(
        np.concatenate([*points, edges[:, :3]]),
        np.concatenate([*weights, np.full(6, 0.042546020777081466438 / 6)]),
    )


def _triangle_degree_2() -> QuadratureRule:
    return QuadratureRule(np.array([[1 / 6, 1 / 6], [2 / 3, 1 / 6], [1 / 6, 2 / 3]]), np.full(3, 1 / 6))


def _multilinear(name: str, corners: F64, *rules: QuadratureRule) -> ReferenceElement:
    shape, slope = (partial(of, corners=corners) for of in (_multilinear_shape, _multilinear_slope))
    return ReferenceElement(name, len(corners), shape, slope, *rules)


_TET_CENTRE = QuadratureRule(np.full((1, 3), 0.25), np.array([1 / 6]))
TET4 = ReferenceElement(
    "tet4", 4, _linear_shape, _linear_slope, _TET_CENTRE, _tet_degree_2(), _tet_degree_5()
)
HEX8 = _multilinear("hex8", HEX_CORNERS, _gauss(2, 3), _gauss(2, 3), _gauss(3, 3))
TRI3 = ReferenceElement("tri3", 3, _linear_shape, _linear_slope, *[_triangle_degree_2()] * 3)
QUAD4 = _multilinear("quad4", QUAD_CORNERS, *[_gauss(2, 2)] * 3)
ELEMENTS = {"tet4": TET4, "hex8": HEX8}
FACETS = {3: TRI3, 4: QUAD4}


def element_named(name: str) -> ReferenceElement:
    """The reference element. Raises InputError for any other than tet4 and hex8."""
    if name not in ELEMENTS:
        raise InputError(f"unknown element '{name}'; expected one of {', '.join(ELEMENTS)}")
    return ELEMENTS[name]
