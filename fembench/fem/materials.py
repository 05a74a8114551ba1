"""The material of every cell: of its tag in `materials`, or else `material`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from fembench.base.arrays import I32, Mask
from fembench.fem.material import Material, Modulus

if TYPE_CHECKING:
    from fembench.fem.problem import ProblemSpec


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
