"""Volume, orientation and shape of cells, vectorised over all cells."""

import numpy as np

from fembench.mesh.elements import element_named


def determinants(x: np.ndarray, cells: np.ndarray, element: str) -> np.ndarray:
    """(n_cells, n_corners): triple product of the edges that leave a corner; right-handed is positive."""
    corners = element_named(element).corners
    result = np.empty((len(cells), len(corners)))
    for column, (a, *others) in enumerate(corners):
        result[:, column] = _triple(*(x[cells[:, b]] - x[cells[:, a]] for b in others))
    return result


def volumes(x: np.ndarray, cells: np.ndarray, element: str) -> np.ndarray:
    """(n_cells,): signed volume.

    hex8: three triple products, exact for the trilinear cell (Dukowicz; Grandy 1997, UCRL-ID-128886).
    """
    if element == "tet4":
        return determinants(x, cells, element)[:, 0] / 6.0
    p = [x[cells[:, a]] for a in range(8)]
    total = _triple(p[3] - p[1] + p[7] - p[2], p[6] - p[3], p[2] - p[0])
    total += _triple(p[4] - p[3] + p[5] - p[7], p[6] - p[4], p[7] - p[0])
    total += _triple(p[1] - p[4] + p[2] - p[5], p[6] - p[1], p[5] - p[0])
    return total / 12.0


def longest_edges(x: np.ndarray, cells: np.ndarray, element: str) -> np.ndarray:
    """(n_cells,): length of the longest edge."""
    return np.sqrt(np.max([_squared(x, cells, edge) for edge in element_named(element).edges], axis=0))


def quality(x: np.ndarray, cells: np.ndarray, element: str) -> np.ndarray:
    """(n_cells,): mean ratio, 1 for a regular tetrahedron or a cube, 0 for a flat or inverted cell.

    tet4: 12 (3 V)^(2/3) / sum of squared edges (Liu and Joe 1994).
    hex8: harmonic mean over the corners of 3 det^(2/3) / |J|_F^2 (Knupp 2001).
    """
    det = np.maximum(determinants(x, cells, element), 0.0)
    if element == "tet4":
        squares = np.sum([_squared(x, cells, edge) for edge in element_named(element).edges], axis=0)
        return np.minimum(12.0 * (det[:, 0] / 2.0) ** (2.0 / 3.0) / np.where(squares > 0, squares, 1.0), 1.0)
    total = np.zeros(len(cells))
    for column, (a, *others) in enumerate(element_named(element).corners):
        norm = np.sum([_squared(x, cells, (a, b)) for b in others], axis=0)
        total += norm / (3.0 * np.maximum(det[:, column], np.finfo(float).tiny) ** (2.0 / 3.0))
    return np.where((det > 0).all(axis=1), np.minimum(8.0 / total, 1.0), 0.0)


def _squared(x: np.ndarray, cells: np.ndarray, edge: np.ndarray | tuple[int, int]) -> np.ndarray:
    """(n_cells,): squared length of one edge of every cell."""
    d = x[cells[:, edge[1]]] - x[cells[:, edge[0]]]
    return np.einsum("ci,ci->c", d, d)


def _triple(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """(n,): a . (b x c) for arrays (n, 3)."""
    return (
        a[:, 0] * (b[:, 1] * c[:, 2] - b[:, 2] * c[:, 1])
        + a[:, 1] * (b[:, 2] * c[:, 0] - b[:, 0] * c[:, 2])
        + a[:, 2] * (b[:, 0] * c[:, 1] - b[:, 1] * c[:, 0])
    )
