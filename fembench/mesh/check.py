"""Checks of a mesh before anything is computed on it. Each raises InputError with one line."""

import numpy as np

from fembench.base.errors import InputError
from fembench.mesh.adjacency import facet_neighbours
from fembench.mesh.elements import element_named
from fembench.mesh.quality import determinants, longest_edges

FLAT = 1e-10  # a corner is flat below this fraction of (longest edge)^3; rounding reaches 1e-15


def check_mesh(x: np.ndarray, cells: np.ndarray, element: str, where: str) -> np.ndarray:
    """All checks, the cheap ones first: the cell behind each facet. Messages begin with `where`, as in
    "mesh wing.msh"."""
    check_shapes(x, cells, element, where)
    check_nodes(x, cells, where)
    check_orientation(x, cells, element, where)
    try:
        return facet_neighbours(cells, element)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def check_shapes(x: np.ndarray, cells: np.ndarray, element: str, where: str) -> None:
    """Coordinates (n, 3), cells (n, nodes of the element), neither empty, numbers that int32 holds."""
    nodes = element_named(element).nodes
    if x.ndim != 2 or x.shape[1] != 3:
        raise InputError(f"{where}: coordinates have shape {x.shape}; expected (n_nodes, 3)")
    if cells.ndim != 2 or cells.shape[1] != nodes:
        raise InputError(
            f"{where}: cells have shape {cells.shape}; expected (n_cells, {nodes}) for {element}"
        )
    if cells.dtype.kind not in "iu":
        raise InputError(f"{where}: cells are of type {cells.dtype}; expected integers")
    if not len(cells):
        raise InputError(f"{where}: no cells; expected at least one {element}")
    if max(len(x), len(cells)) > np.iinfo(np.int32).max:
        raise InputError(f"{where}: {len(x)} nodes and {len(cells)} cells are too many for 32-bit numbers")


def check_nodes(x: np.ndarray, cells: np.ndarray, where: str) -> None:
    """Node numbers within range, coordinates finite, every node in some cell."""
    low, high = int(cells.min()), int(cells.max())
    if low < 0 or high >= len(x):
        raise InputError(f"{where}: cells name nodes {low} to {high}; expected 0 to {len(x) - 1}")
    infinite = ~np.isfinite(x).all(axis=1)
    if infinite.any():
        raise InputError(f"{where}: {_some(infinite, 'node')} with a coordinate that is not finite")
    orphan = np.ones(len(x), dtype=bool)
    orphan[cells.reshape(-1)] = False
    if orphan.any():
        raise InputError(f"{where}: {_some(orphan, 'node')} in no cell; expected every node in at least one")


def check_orientation(x: np.ndarray, cells: np.ndarray, element: str, where: str) -> None:
    """Every corner of every cell right-handed and not flat."""
    with np.errstate(all="ignore"):  # coordinates near the end of float64 overflow: not-a-number is flat
        relative = determinants(x, cells, element) / longest_edges(x, cells, element)[:, None] ** 3
    flat = ~(np.abs(relative) > FLAT).all(axis=1)
    if flat.any():
        raise InputError(f"{where}: {_some(flat, 'cell')} degenerate (flat, or with coinciding nodes)")
    inverted = (relative < 0).any(axis=1)
    if inverted.any():
        raise InputError(f"{where}: {_some(inverted, 'cell')} inverted (negative volume at a corner)")


def _some(bad: np.ndarray, noun: str) -> str:
    """'3 of 864 cells (first: 17)'."""
    return f"{np.count_nonzero(bad)} of {len(bad)} {noun}s (first: {int(np.argmax(bad))})"
