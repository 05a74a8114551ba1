import numpy as np
import pytest

from fembench.base.errors import InputError
from fembench.fem.materials import Material, stiffness


def test_lame_parameters_are_those_of_a_hand_calculation():
    material = Material(E=2.5, nu=0.25)
    assert material.lam == pytest.approx(1.0, rel=1e-15)
    assert material.mu == pytest.approx(1.0, rel=1e-15)


def test_uniaxial_strain_with_free_contraction_gives_uniaxial_stress():
    material = Material(E=210e9, nu=0.3)
    sigma = stiffness(material.lam, material.mu) @ [1.0, -0.3, -0.3, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(sigma, [210e9, 0, 0, 0, 0, 0], atol=1e-3)


def test_shear_modulus_multiplies_engineering_shear():
    material = Material(E=210e9, nu=0.3)
    np.testing.assert_allclose(
        stiffness(material.lam, material.mu)[3:, 3:], np.eye(3) * 210e9 / 2.6, rtol=1e-15
    )


SIZES = (-1.0, np.nan, np.inf, 1e-300, 1e300)
RATIOS = (-1.0, 0.5, 0.7, np.nan, 0.5 - 2**-54, -1 + 2**-53)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        *(({"E": E}, "E must be") for E in (0.0, *SIZES)),
        *(({"nu": nu}, r"nu must lie between -1 and 0\.5") for nu in RATIOS),
        *(({"rho": rho}, "rho must be") for rho in SIZES),
    ],
)
def test_a_material_out_of_range_is_refused(values, message):
    with pytest.raises(InputError, match=message):
        Material(**values)
