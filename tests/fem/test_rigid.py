import numpy as np
import pytest

from fembench.fem.extent import gram, orthonormal, restrained_motions, rigid_modes

X = np.random.default_rng(0).uniform(0, 1, (20, 3))


def everywhere(x):
    return np.ones((len(x), 3), dtype=bool)


def test_rigid_motions_cause_no_strain_to_first_order():
    x = np.concatenate([np.eye(3), -np.eye(3), np.zeros((1, 3))])  # central differences at the origin
    modes = rigid_modes(x, np.array([0.3, -0.2, 0.5]))
    slopes = (modes[:3] - modes[3:6]) / 2  # [j, i, mode] = du_i / dx_j
    np.testing.assert_allclose(slopes + slopes.transpose(1, 0, 2), 0.0, atol=1e-15)
    assert np.linalg.matrix_rank(modes.reshape(-1, 6)) == 6


def test_a_rotation_about_z_moves_x_towards_y_about_the_centre():
    modes = rigid_modes(np.array([[2.0, 1.0, 5.0]]), np.array([1.0, 1.0, 1.0]), length=2.0)
    np.testing.assert_allclose(modes[0, :, 5], [0.0, 0.5, 0.0])


def test_two_parts_with_the_summed_gram_matrix_are_orthonormal_together():
    centre = X.mean(axis=0)
    parts = [rigid_modes(x, centre) for x in (X[:7], X[7:])]
    total = sum(gram(m, everywhere(m)) for m in parts)
    together = np.concatenate([orthonormal(m, total) for m in parts])
    np.testing.assert_allclose(gram(together, everywhere(X)), np.eye(6), atol=1e-14)


@pytest.mark.parametrize(
    ("points", "components", "motions"),
    [
        ([], [0, 1, 2], 0),
        ([[0, 0, 0]], [0, 1, 2], 3),
        ([[0, 0, 0], [1, 0, 0]], [0, 1, 2], 5),
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [0, 1, 2], 6),
        ([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [0, 1, 2], 5),  # on one line: it turns about the line
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [2], 3),  # on rollers
    ],
)
def test_supports_restrain_as_many_motions_as_statics_says(points, components, motions):
    x = np.array(points, dtype=float).reshape(-1, 3)
    mask = np.zeros((len(x), 3), dtype=bool)
    mask[:, components] = True
    modes = rigid_modes(x, np.array([0.4, 0.3, 0.7]))
    assert restrained_motions(gram(modes, mask)) == motions
