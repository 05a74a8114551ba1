import numpy as np
import pytest

from fembench.mesh.box import box
from fembench.mesh.elements import longest_edges, quality, volumes

REGULAR = np.array([[1, 1, 1], [-1, 1, -1], [1, -1, -1], [-1, -1, 1]], dtype=float)
TET = np.array([[0, 1, 2, 3]])
HEX = np.arange(8)[None]
CUBE = np.array(
    [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]], float
)


def rotated(x, seed=0):
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    return 7.0 * x @ (q * np.sign(np.linalg.det(q))).T + [3.0, -2.0, 5.0]


@pytest.mark.parametrize(("x", "cells", "element"), [(REGULAR, TET, "tet4"), (CUBE, HEX, "hex8")])
def test_a_regular_cell_has_quality_one_wherever_it_lies(x, cells, element):
    assert quality(x, cells, element)[0] == pytest.approx(1.0, abs=1e-12)
    assert quality(rotated(x), cells, element)[0] == pytest.approx(1.0, abs=1e-12)
    assert quality(rotated(x), cells, element)[0] <= 1.0


def test_a_stretched_cube_is_worth_the_mean_ratio_of_its_edges():
    # 3 det^(2/3) / |J|^2 with edges 1, 1, 8 at every corner: 3 * 4 / 66
    assert quality(CUBE * [1, 1, 8], HEX, "hex8")[0] == pytest.approx(12 / 66)


PUSHED_IN = np.where(CUBE.sum(axis=1, keepdims=True) == 3, 0.3, CUBE)


@pytest.mark.parametrize(
    "x",
    [
        *(REGULAR[[1, 0, 2, 3]], REGULAR * [1, 1, 0], np.zeros((4, 3))),
        *(CUBE * [1, 1, -1], CUBE * [1, 0, 1], PUSHED_IN),
    ],
)
def test_flat_and_inverted_cells_have_quality_zero(x):
    cells, element = (TET, "tet4") if len(x) == 4 else (HEX, "hex8")
    assert quality(x, cells, element)[0] == 0.0


def test_the_volume_of_a_tetrahedron_is_a_sixth_of_the_determinant():
    x = np.random.default_rng(3).normal(size=(4, 3))
    assert volumes(x, TET, "tet4")[0] == pytest.approx(np.linalg.det(x[1:] - x[0]) / 6, rel=1e-12)
    assert volumes(x[[1, 0, 2, 3]], TET, "tet4")[0] == pytest.approx(
        -np.linalg.det(x[1:] - x[0]) / 6, rel=1e-12
    )


def test_the_volume_of_a_skewed_hexahedron_is_the_integral_of_its_jacobian():
    x = CUBE + 0.3 * np.random.default_rng(5).uniform(-1, 1, CUBE.shape)
    points, weights = np.polynomial.legendre.leggauss(3)
    signs = 2 * CUBE - 1
    total = 0.0
    for (a, wa), (b, wb), (c, wc) in np.array(
        [[p, q, r] for p in zip(points, weights) for q in zip(points, weights) for r in zip(points, weights)]
    ):
        s, at = signs, np.array([a, b, c])
        terms = 1 + s * at
        dN = np.stack([s[:, i] * terms[:, (i + 1) % 3] * terms[:, (i + 2) % 3] for i in range(3)], axis=1) / 8
        total += wa * wb * wc * np.linalg.det(dN.T @ x)
    assert volumes(x, HEX, "hex8")[0] == pytest.approx(total, rel=1e-12)


def test_the_longest_edge_of_a_kuhn_tetrahedron_is_the_diagonal():
    mesh = box((1, 1, 1), lengths=(1.0, 2.0, 2.0))
    assert longest_edges(mesh.x, mesh.cells, "tet4") == pytest.approx(3.0)
    assert longest_edges(CUBE * [1, 2, 3], HEX, "hex8") == pytest.approx(3.0)
