"""Isotropic elasticity: sigma = C epsilon, xx yy zz xy yz zx, engineering shear."""

import msgspec
import numpy as np

from fembench.base.arrays import F64
from fembench.fem.checks import LARGEST, SMALLEST, SpecError

Modulus = float | F64  # of all cells, or (n_cells,), Pa
MARGIN = 1e-9  # of nu: nearer to its limits, rounding spoils the stiffness


class Material(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Young's modulus `E` in Pa, Poisson's ratio `nu`, density `rho` in kg/m³."""

    E: float = 210e9
    nu: float = 0.3
    rho: float = 7850.0

    def __post_init__(self) -> None:
        if not SMALLEST <= self.E <= LARGEST:
            raise SpecError(f"E must be {SMALLEST:g} to {LARGEST:g} Pa, got {self.E:g}")
        if not -1 + MARGIN <= self.nu <= 0.5 - MARGIN:
            raise SpecError(f"nu must lie between -1 and 0.5, {MARGIN:g} away from both, got {self.nu!r}")
        if not (self.rho == 0 or SMALLEST <= self.rho <= LARGEST):
            raise SpecError(f"rho must be 0 or {SMALLEST:g} to {LARGEST:g} kg/m³, got {self.rho:g}")

    @property
    def lam(self) -> float:
        """First Lamé parameter, Pa."""
        return self.E * self.nu / ((1 + self.nu) * (1 - 2 * self.nu))

    @property
    def mu(self) -> float:
        """Second Lamé parameter, the shear modulus, Pa."""
        return self.E / (2 * (1 + self.nu))


def stiffness(lam: Modulus, mu: Modulus) -> F64:
    """C (6, 6), or (n_cells, 6, 6): stress from engineering strain."""
    dilation = np.zeros((6, 6))
    dilation[:3, :3] = 1
    return np.multiply.outer(mu, np.diag([2, 2, 2, 1, 1, 1])) + np.multiply.outer(lam, dilation)
