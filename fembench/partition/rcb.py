"""Recursive coordinate bisection with target shares: no graph, no randomness.

The parts are halved, and the cells are cut across the longest side of their bounding
box in proportion to the shares of the two halves. A cell lies where its lowest corner
does, the least of each coordinate of its nodes: then all cells of a node below the cut
are below it too, and the nodes shared lie on one side of the cut. By centroids, a cut
through irregular cells would share a quarter more.

A structured mesh has its cells in layers: a plane through a layer would tear it apart
and share twice the nodes. So all cells of the layer in which the cut falls, between
gaps in their coordinates, count as equal, and the layer is divided along the next
longest side. Every part gets its exact number of cells.

The cells may be spread over ranks in any way: all regions of a level are cut at once,
by histograms and extremes that are reduced over the ranks. They are whole numbers, so
the parts do not depend on the ranks.
"""

from collections.abc import Sequence

import numpy as np

from fembench.mesh.sliced import RESOLUTION, Alone, World, in_steps

REACH = 1.9  # how far a layer may extend, in (bounding box / cells)^(1/3)
DIGIT = 11  # bits of a value that one histogram finds
DIGITS = 3  # of a coordinate or the number of a cell
BINS = 512  # across the reach of a layer
GAP = 0.2  # of the reach: the least gap that ends a layer
PIECE = 1 << 16  # values that are examined at once
FAR = np.iinfo(np.int64).max

Ints = list[np.ndarray]  # one array for each region


def bisect_coordinates(corners: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """(n_cells,) int32: part p gets sizes[p] cells. corners: (n_cells, 3) `lowest_corners`."""
    return bisect(in_steps(corners, corners.min(axis=0), corners.max(axis=0)), 0, sizes, Alone())


def bisect(steps: np.ndarray, first_cell: int, sizes: Sequence[int], world: World) -> np.ndarray:
    """(n,) int32: parts of this rank's cells, from `first_cell` on. steps: (n, 3) corners.

    Part p gets sizes[p] of all ranks' cells. Collective.
    """
    spans = world.max(steps.max(axis=0, initial=0).astype(np.int64)) / RESOLUTION
    edge = np.prod(np.maximum(spans, 1e-6) / sum(sizes) ** (1 / 3)) ** (1 / 3)
    reach = int(REACH * edge * RESOLUTION)
    part = np.zeros(len(steps), dtype=np.int32)
    ends = np.cumsum([0, *sizes])
    regions = [(np.arange(len(steps), dtype=np.int32), 0, len(sizes))]
    while regions := [region for region in regions if region[2] - region[1] > 1]:
        middles = [(first + last) // 2 for _, first, last in regions]
        wanted = np.array([ends[middle] - ends[region[1]] for middle, region in zip(middles, regions)])
        halves = _split([cells for cells, _, _ in regions], steps, first_cell, wanted, reach, world)
        cut = []
        for (lower, upper), middle, (_, first, last) in zip(halves, middles, regions):
            part[upper] = middle
            cut += [(lower, first, middle), (upper, middle, last)]
        regions = cut
    return part


def _split(
    regions: Ints, steps: np.ndarray, first_cell: int, wanted: np.ndarray, reach: int, world: World
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each region the `wanted` cells low on its longest axis; the rest; ascending."""
    axes = _longest_first(regions, steps, world)
    along = [_along(steps, cells, a) for cells, (a, _, _) in zip(regions, axes)]
    pivot, _ = _ranked(along, wanted - 1, world)
    bottom, top = _layers(along, pivot, reach, world)
    lower = [values < low for values, low in zip(along, bottom)]
    level = [np.flatnonzero((v >= low) & (v <= high)) for v, low, high in zip(along, bottom, top)]
    wanted = wanted - world.sum(np.array([np.count_nonzero(mask) for mask in lower], np.int64))
    for key in (1, 2, 0, None):  # in a layer: other coordinates, then cell numbers
        members = [cells[at] for cells, at in zip(regions, level)]
        if key is None:
            values = [first_cell + cells.astype(np.int64) for cells in members]
        else:
            values = [steps[cells, axis[key]] for cells, axis in zip(members, axes)]
        limit, below = _ranked(values, wanted - 1, world)
        wanted = wanted - below
        for mask, at, v, last in zip(lower, level, values, limit):
            mask[at[v < last]] = True
        level = [at[v == last] for at, v, last in zip(level, values, limit)]
    del along  # all that is left is the mask
    for mask, at in zip(lower, level):  # the last cell
        mask[at] = True
    return [(cells[mask], cells[~mask]) for cells, mask in zip(regions, lower)]


def _longest_first(regions: Ints, steps: np.ndarray, world: World) -> np.ndarray:
    """(n_regions, 3): the axes of each region."""
    extremes = np.full((len(regions), 2, 3), -FAR)
    for row, cells in zip(extremes, regions):
        for axis in range(3) if len(cells) else ():
            values = _along(steps, cells, axis)
            row[:, axis] = values.max(), -values.min()
    return np.argsort(-world.max(extremes).sum(axis=1), axis=1, kind="stable")


def _along(steps: np.ndarray, cells: np.ndarray, axis: int) -> np.ndarray:
    """(n,) int32: one coordinate of these cells."""
    values = np.empty(len(cells), np.int32)
    for out, piece in zip(_pieces(values), _pieces(cells)):
        out[:] = steps[piece, axis]
    return values


def _ranked(values: Ints, k: np.ndarray, world: World) -> tuple[np.ndarray, np.ndarray]:
    """(n_regions,) the value number k[region], from 0, ascending, and how many are below it.

    It is found one digit after the other.
    """
    found = np.zeros(len(values), np.int64)
    below = np.zeros(len(values), np.int64)
    for shift in range(DIGIT * (DIGITS - 1), -1, -DIGIT):
        counts = np.zeros((len(values), 1 << DIGIT), np.int64)
        for row, v, prefix in zip(counts, values, found):
            for piece in _pieces(v):
                digits = (piece >> shift) - (prefix << DIGIT)
                row += np.bincount(digits[(digits >= 0) & (digits < 1 << DIGIT)], minlength=1 << DIGIT)
        ends = np.cumsum(world.sum(counts), axis=1)
        digit = np.count_nonzero(ends <= (k - below)[:, None], axis=1)
        below += np.where(digit, np.take_along_axis(ends, np.maximum(digit - 1, 0)[:, None], 1)[:, 0], 0)
        found = (found << DIGIT) + digit
    return found, below


def _layers(along: Ints, pivots: np.ndarray, reach: int, world: World) -> tuple[np.ndarray, np.ndarray]:
    """(n_regions,) lowest and highest coordinate of the layer round each pivot.

    It ends at the nearest wide gap on either side; without one within reach, at the
    pivot.
    """
    extremes = np.full((len(along), 2, BINS), -FAR)
    for row, values, pivot in zip(extremes, along, pivots):
        near = np.concatenate([v[np.abs(v - pivot) <= reach] for v in _pieces(values)]).astype(np.int64)
        place = (near - pivot + reach) * BINS // (2 * reach + 1)
        np.maximum.at(row[0], place, near)
        np.maximum.at(row[1], place, -near)
    layers = [_layer(high, low, pivot, reach) for (high, low), pivot in zip(world.max(extremes), pivots)]
    return np.array([low for low, _ in layers]), np.array([high for _, high in layers])


def _pieces(values: np.ndarray) -> Ints:
    """Views of the values, at least one, so small that computing with one takes little."""
    return [values[low : low + PIECE] for low in range(0, max(len(values), 1), PIECE)]


def _layer(highest: np.ndarray, lowest: np.ndarray, pivot: int, reach: int) -> tuple[int, int]:
    """The layer round a pivot, from the extremes of each bin, the lowest negated."""
    filled = highest > -FAR
    high = np.append(pivot - reach, highest[filled])  # where each gap begins,
    low = np.append(-lowest[filled], pivot + reach)  # and where it ends
    wide = np.flatnonzero(low - high >= GAP * reach)
    at = int(np.searchsorted(high[1:], pivot))
    below, above = wide[wide <= at], wide[wide > at]
    bottom = low[below[-1]] if len(below) else pivot
    return int(bottom), int(high[above[0]] if len(above) else pivot)


def apportion(targets: Sequence[float], n: int) -> list[int]:
    """Whole numbers >= 1 that sum to n, closest to targets * n (largest remainders)."""
    exact = np.array(targets) * n
    sizes = np.maximum(np.floor(exact).astype(np.int64), 1)
    while sizes.sum() < n:
        sizes[int(np.argmax(exact - sizes))] += 1
    while sizes.sum() > n:
        sizes[int(np.argmax(np.where(sizes > 1, sizes - exact, -np.inf)))] -= 1
    return [int(s) for s in sizes]
