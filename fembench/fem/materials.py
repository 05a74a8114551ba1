"""Isotropic elasticity: sigma = C epsilon, xx yy zz xy yz zx, engineering shear.

The material of every cell is that of its tag in `materials`, or else `material`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from fembench.base.arrays import F64, I32, Mask
from fembench.fem.checks import LARGEST, SMALLEST, SpecError

if TYPE_CHECKING:
    from fembench.fem.problem import ProblemSpec


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


class Tagged(Protocol):
    """The cells of one rank, or of a whole mesh."""

    @property
    def cells(self) -> I32: ...  # (n_cells, npc)
    @property
    def cell_tags(self) -> Mapping[str, Mask]: ...  # (n_cells,) each


def cells_by_material(spec: ProblemSpec, body: Tagged) -> Iterator[tuple[Material, slice | Mask]]:
    """Each material with its cells."""
    if not spec.materials:
        yield spec.material, slice(None)
        return
    rest = np.ones(len(body.cells), dtype=bool)
    for tag, material in spec.materials.items():
        yield material, body.cell_tags[tag]
        rest &= ~body.cell_tags[tag]
    yield spec.material, rest


def lame(spec: ProblemSpec, body: Tagged) -> tuple[Modulus, Modulus]:
    """(lam, mu) in Pa: numbers if there is one material, else (n_cells,) each."""
    if not spec.materials:
        return spec.material.lam, spec.material.mu
    lam, mu = np.empty((2, len(body.cells)))
    for material, cells in cells_by_material(spec, body):
        lam[cells], mu[cells] = material.lam, material.mu
    return lam, mu


def part_of(modulus: Modulus, cells: slice | NDArray) -> Modulus:
    """The modulus of some cells."""
    return modulus[cells] if isinstance(modulus, np.ndarray) else modulus


def unclear(spec: ProblemSpec, tags: Mapping[str, Mask]) -> frozenset[str]:
    """Why some cells have no material, or two."""
    if not spec.materials:
        return frozenset()
    given = {tag: mask for tag, mask in tags.items() if tag in spec.materials}
    known = np.any([*given.values()], axis=0)
    none = {f"cells of tag '{t}' have no material" for t in tags.keys() - given if np.any(tags[t] & ~known)}
    two = {
        f"cells of tags '{a}' and '{b}' have two"
        for a, b in combinations(sorted(given), 2)
        if np.any(tags[a] & tags[b])
    }
    return frozenset(none | two)
