"""Integrals over cells and facets in plain numpy: the reference of the compiled kernels.

Symbols: `x_cells` (n, npc, 3) the coordinates of each cell's nodes, `dN` (n, n_q, npc, 3)
gradients of the shape functions with respect to x, `dV` (n, n_q) quadrature weight times
det J, `B` (n, n_q, 6, 3 npc) engineering strain from displacements, `nd` = 3 npc.
`element_stiffness` bounds its own memory; callers of the others with many cells go
through `chunks`.

Strain and stress are averaged over the volume of each cell, for pictures and exports.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from fembench.base.arrays import F64, I32
from fembench.base.errors import InputError
from fembench.fem.materials import Modulus, part_of, stiffness
from fembench.fem.shapes import FACETS, QuadratureRule, ReferenceElement, element_named

CHUNK = 1024  # cells: their intermediate arrays stay in cache
FAR = 4  # of a table of nodes: entries for each number that is summed; beyond, nodes are sorted
# Voigt row, displacement component, derivative direction of every entry of B
_STRAIN = (
    (0, 0, 0),
    (1, 1, 1),
    (2, 2, 2),
    (3, 0, 1),
    (3, 1, 0),
    (4, 1, 2),
    (4, 2, 1),
    (5, 0, 2),
    (5, 2, 0),
)


def chunks(n: int, length: int = CHUNK) -> Iterator[slice]:
    """Slices that cover range(n)."""
    return (slice(start, min(start + length, n)) for start in range(0, n, length))


def scatter_add(target: F64, nodes: I32, terms: F64) -> None:
    """Add terms (n, npc, k) to target (n_nodes, k) at nodes (n, npc), in place."""
    if not nodes.size:
        return
    first, last = int(nodes.min()), int(nodes.max()) + 1
    held: slice | NDArray[np.integer] = slice(first, last)
    index: NDArray[np.integer] = (nodes.T - first).ravel()
    if last - first > FAR * nodes.size:
        held, index = np.unique(nodes.T.ravel(), return_inverse=True)
    for i in range(target.shape[1]):
        target[held, i] += np.bincount(index, terms[:, :, i].T.ravel())


def gradients(x_cells: F64, element: str) -> tuple[F64, F64]:
    """dN and dV at the points of the stiffness rule. Raises InputError for det J <= 0."""
    reference = element_named(element)
    rule = reference.stiffness_rule
    J, detJ = _jacobians(x_cells, reference, rule.points)
    a, b, c = J[..., 0, :], J[..., 1, :], J[..., 2, :]
    inverse = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], axis=-1) / detJ[..., None, None]
    dN = np.einsum("qaj,eqji->eqai", reference.slope(rule.points), inverse)
    return dN, rule.weights * detJ


def measures(x_cells: F64, element: str, rule: QuadratureRule) -> F64:
    """dV (n, n_q) at the points of `rule`. Raises InputError where det J is not positive."""
    reference = element_named(element)
    points = rule.points[:1] if reference.affine else rule.points
    return rule.weights * _jacobians(x_cells, reference, points)[1]


def _jacobians(x_cells: F64, reference: ReferenceElement, points: F64) -> tuple[F64, F64]:
    """J (n, n_q, 3, 3) with J[i, j] = dx_i / dxi_j, and det J (n, n_q)."""
    J = np.tensordot(x_cells, reference.slope(points), axes=(1, 1)).transpose(0, 2, 1, 3)
    a, b, c = J[..., 0, :], J[..., 1, :], J[..., 2, :]
    detJ = (
        a[..., 0] * (b[..., 1] * c[..., 2] - b[..., 2] * c[..., 1])
        + a[..., 1] * (b[..., 2] * c[..., 0] - b[..., 0] * c[..., 2])
        + a[..., 2] * (b[..., 0] * c[..., 1] - b[..., 1] * c[..., 0])
    )
    if not np.all(detJ > 0):
        bad = np.count_nonzero(~np.all(detJ > 0, axis=1))
        raise InputError(
            f"{bad} of {len(x_cells)} {reference.name} cells are inverted or degenerate (det J <= 0)"
        )
    return J, detJ


def strain_matrix(dN: F64) -> F64:
    """B (n, n_q, 6, nd)."""
    n, n_q, n_nodes, _ = dN.shape
    B = np.zeros((n, n_q, 6, n_nodes, 3))
    for row, component, direction in _STRAIN:
        B[:, :, row, :, component] = dN[..., direction]
    return B.reshape(n, n_q, 6, 3 * n_nodes)


def element_stiffness(x_cells: F64, element: str, lam: Modulus, mu: Modulus) -> F64:
    """ke (n, nd, nd) = sum_q Bᵀ C B dV, dofs node-major; exactly symmetric (Bathe, 4.2)."""
    nd = 3 * x_cells.shape[1]
    ke = np.empty((len(x_cells), nd, nd))
    for chunk in chunks(len(x_cells)):
        dN, dV = gradients(x_cells[chunk], element)
        B = strain_matrix(dN)
        C = stiffness(part_of(lam, chunk), part_of(mu, chunk))
        CB = C[..., None, :, :] @ (B * dV[:, :, None, None])
        n = len(B)
        part = B.reshape(n, -1, nd).transpose(0, 2, 1) @ CB.reshape(n, -1, nd)  # sums over q and rows
        ke[chunk] = (part + part.transpose(0, 2, 1)) / 2
    return ke


def interpolated(values: F64, element: str, rule: QuadratureRule) -> F64:
    """(n, n_q, 3) nodal values (n, npc, 3), such as coordinates, at the points of `rule`."""
    return element_named(element).shape(rule.points) @ values


def body_integral(x_cells: F64, element: str, density: Callable[[F64], F64]) -> F64:
    """fe (n, npc, 3) = sum_q N_a b(x_q) dV; `density` maps points (m, 3) to N/m³ (m, 3)."""
    rule = element_named(element).load_rule
    x = interpolated(x_cells, element, rule)
    b = density(x.reshape(-1, 3)).reshape(x.shape)
    return element_named(element).shape(rule.points).T @ (b * measures(x_cells, element, rule)[:, :, None])


def shape_integral(x_cells: F64, element: str) -> F64:
    """(n, npc) the integral of each N_a over its cell, m³; its sum over a is the volume."""
    rule = element_named(element).load_rule
    return measures(x_cells, element, rule) @ element_named(element).shape(rule.points)


def facet_shape_integral(x_facets: F64) -> F64:
    """(n, 3|4) the integral of each N_a over its facet, m²; its sum over a is the area.

    `x_facets` (n, 3|4, 3): a flat triangle or a bilinear quadrilateral in space.
    """
    facet = FACETS[x_facets.shape[1]]
    rule = facet.load_rule
    tangents = np.einsum("eai,qaj->eqji", x_facets, facet.slope(rule.points))
    dA = rule.weights * np.linalg.norm(np.cross(tangents[:, :, 0], tangents[:, :, 1]), axis=-1)
    return dA @ facet.shape(rule.points)


def cell_strain(x: F64, cells: I32, element: str, u: F64) -> F64:
    """(n_cells, 6) mean engineering strain of each cell from displacements (n_nodes, 3)."""
    strain = np.empty((len(cells), 6))
    for chunk in chunks(len(cells)):
        nodes = cells[chunk]
        dN, dV = gradients(x[nodes], element)
        at_points = strain_matrix(dN) @ u[nodes].reshape(len(nodes), 1, -1, 1)
        mean = dV / dV.sum(axis=1, keepdims=True)
        strain[chunk] = np.einsum("eqi,eq->ei", at_points[..., 0], mean)
    return strain


def cell_stress(x: F64, cells: I32, element: str, lam: Modulus, mu: Modulus, u: F64) -> F64:
    """(n_cells, 6) mean stress of each cell, Pa."""
    return (cell_strain(x, cells, element, u)[:, None] @ stiffness(lam, mu))[:, 0]


def von_mises(sigma: F64) -> F64:
    """(n,) von Mises stress of stresses (n, 6), Pa."""
    normal, shear = sigma[:, :3], sigma[:, 3:]
    deviator = normal - normal.mean(axis=1, keepdims=True)
    return np.sqrt(1.5 * np.sum(deviator**2, axis=1) + 3 * np.sum(shear**2, axis=1))
