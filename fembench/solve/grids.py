"""Background grids: the coarse levels of multigrid, for any mesh.

A Cartesian grid covers the body. A coarse node is a grid node with a fine node in one of the eight grid
cells around it. The prolongator P holds the trilinear weights of each fine node, from its coordinates alone,
for all three displacement components, so it reproduces all linear displacements, rigid motions among them.
The next grid coarsens the one before in the same way.

Spacings are doubled per direction, short ones first: a mesh of cells stretched 10 : 1 is coarsened in the
short directions alone until grid cells are about cubes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fembench.kernels.backend import kernels
from fembench.ranks.sharing import Sharing, find_sharing

if TYPE_CHECKING:
    from fembench.ranks.comm import Comm

F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

CORNERS = np.array([[i, j, k] for k in (0, 1) for j in (0, 1) for i in (0, 1)])  # of a grid cell
ON_NODE = 1e-6  # of a spacing: a node this near a grid plane lies on it


@dataclass(frozen=True)
class BackgroundGrid:
    """The node (i, j, k) lies at origin + spacing (i, j, k), for 0 <= i, j, k < counts."""

    origin: F64  # (3,), metre
    spacing: F64  # (3,), metre
    counts: I64  # (3,) nodes in each direction

    @property
    def strides(self) -> I64:
        """(3,) of the number of a node: the first direction runs fastest."""
        return np.array([1, self.counts[0], self.counts[0] * self.counts[1]])

    def at(self, numbers: I64) -> F64:
        """(n, 3) coordinates of nodes."""
        index = numbers[:, None] // self.strides % self.counts
        return self.origin + self.spacing * index

    def coarser(self, factor: float = 2.0) -> BackgroundGrid:
        """The next grid: the spacing times `factor` wherever it is less than `factor` times the smallest."""
        short = self.spacing < factor * (1 - ON_NODE) * self.spacing.min()
        return grid_over(
            self.origin, self.spacing * (self.counts - 1), self.spacing * np.where(short, factor, 1)
        )

    def weights(self, x: F64) -> tuple[I64, F64]:
        """(numbers (n, 8), weights (n, 8)) of the corners of each point's grid cell, zero weights last."""
        places = (x - self.origin) / self.spacing
        nearest = np.rint(places)
        s = np.where(np.abs(places - nearest) < ON_NODE, nearest, places)
        base = np.clip(np.floor(s), 0, np.maximum(self.counts - 2, 0)).astype(np.int64)
        t = np.clip(s - base, 0.0, 1.0)
        sides = np.stack((1.0 - t, t), axis=1)  # (n, 2, 3)
        weights = np.ones((len(x), len(CORNERS)))
        for c in range(3):
            weights *= sides[:, CORNERS[:, c], c]
        first, steps = base @ self.strides, CORNERS @ self.strides
        order = np.argsort(weights == 0.0, axis=1, kind="stable")
        numbers = first[:, None] + steps[order]
        return numbers.astype(np.int64), np.take_along_axis(weights, order, 1)


def grid_over(origin: F64, extent: F64, spacing: F64) -> BackgroundGrid:
    """The grid of this spacing that covers a box."""
    cells = np.maximum(np.ceil(extent / spacing - ON_NODE), 1).astype(np.int64)
    return BackgroundGrid(origin, spacing, cells + 1)


@dataclass(frozen=True)
class Prolongator:
    """P from the grid nodes of one rank to its fine nodes."""

    parent: I32  # (n_fine, 8) local grid nodes
    weight: F64  # (n_fine, 8), zeros last
    numbers: I64  # (n_coarse,) of the grid's nodes, interior first, interface last
    sharing: Sharing  # of these nodes
    n_interior: int  # grid nodes on this rank only

    @property
    def n_coarse(self) -> int:
        return len(self.numbers)


def prolongator(comm: Comm, grid: BackgroundGrid, x: F64) -> Prolongator:
    """From a grid to the nodes at x (n, 3). Collective."""
    corner, weight = grid.weights(x)
    used, back = np.unique(corner[weight > 0.0], return_inverse=True)
    sharing = find_sharing(comm, used)
    order = np.argsort(sharing.sharers > 1, kind="stable")  # new -> old
    position = np.empty(order.size, np.int32)
    position[order] = np.arange(order.size, dtype=np.int32)
    parent = np.zeros(corner.shape, np.int32)
    parent[weight > 0.0] = position[back.reshape(-1)]
    moved = Sharing(
        sharing.ranks,
        tuple(np.ascontiguousarray(position[nodes]) for nodes in sharing.nodes),
        sharing.sharers[order],
        sharing.owned[order],
    )
    weights = kernels.empty(weight.shape)
    weights[:] = weight
    return Prolongator(parent, weights, used[order], moved, int((sharing.sharers == 1).sum()))
