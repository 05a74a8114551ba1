"""Background grids: the coarse levels of multigrid, for any mesh.

A Cartesian grid covers the body. A coarse node is a grid node with a fine node in one
of the eight grid cells around it. The prolongator P holds the trilinear weights of each
fine node, from its coordinates alone, for all three displacement components, so it
reproduces all linear displacements, rigid motions among them, to single precision.
The next grid coarsens the one before in the same way.

A slit or a soft layer may divide the body around a grid node. If one node served both
sides, each would move with the other. So a grid node is there once for each piece of
the body around it: fine nodes of one kind that are connected within the grid cells
around it. A piece has the least name of its nodes, which is the same for every
partition: KINDS times the least global number, plus the kind.

Spacings are doubled per direction, short ones first: a mesh of cells stretched 10 : 1
is coarsened in the short directions alone until grid cells are about cubes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fembench.base.arrays import F64, I32, I64
from fembench.kernels.backend import kernels
from fembench.ranks.subdomain import Sharing, find_sharing

if TYPE_CHECKING:
    from fembench.ranks.interface import Interface


CORNERS = np.array([[i, j, k] for k in (0, 1) for j in (0, 1) for i in (0, 1)])  # of a grid cell
KINDS = 8  # of nodes, in materials of different stiffness
ON_NODE = 1e-6  # of a spacing: a node this near a grid plane lies on it


class BackgroundGrid(Struct, frozen=True):
    """The node (i, j, k) lies at origin + spacing (i, j, k), for 0 <= i, j, k < counts."""

    origin: F64  # (3,), metre
    spacing: F64  # (3,), metre
    counts: I64  # (3,) nodes in each direction

    @property
    def strides(self) -> I64:
        """(3,) of the number of a node: the first direction runs fastest."""
        return np.array([1, self.counts[0], self.counts[0] * self.counts[1]])

    @property
    def size(self) -> int:
        """Nodes of the grid."""
        return int(np.prod(self.counts))

    def at(self, numbers: I64) -> F64:
        """(n, 3) coordinates of nodes, whatever their pieces."""
        index = numbers[:, None] // self.strides % self.counts
        return self.origin + self.spacing * index

    def coarser(self, factor: float = 2.0) -> BackgroundGrid:
        """The next grid: the spacing times `factor` where it is less than `factor` times
        the smallest."""
        short = self.spacing < factor * (1 - ON_NODE) * self.spacing.min()
        return grid_over(
            self.origin, self.spacing * (self.counts - 1), self.spacing * np.where(short, factor, 1)
        )

    def weights(self, x: F64) -> tuple[I64, F64]:
        """(numbers, weights), (n, 8) each, of the corners of each point's cell, zeros
        last."""
        places = (x - self.origin) / self.spacing
        nearest = np.rint(places)
        s = np.where(np.abs(places - nearest) < ON_NODE, nearest, places)
        base = np.clip(np.floor(s), 0, np.maximum(self.counts - 2, 0)).astype(np.int64)
        t = np.clip(s - base, 0.0, 1.0)
        found = corner_weights(np.stack((1.0 - t, t), axis=1))
        case = ((t == 0.0) + 2 * (t == 1.0)) @ np.array([1, 3, 9])
        numbers = (base @ self.strides)[:, None] + (CORNERS @ self.strides)[ZEROS_LAST][case]
        return numbers, np.take_along_axis(found, ZEROS_LAST[case], 1)


def corner_weights(sides: F64) -> F64:
    """(n, 8) weights of a cell's corners, from those of its sides in each direction,
    (n, 2, 3)."""
    i, j, k = sides.transpose(2, 0, 1)
    ij = j[:, :, None] * i[:, None, :]
    return (k[:, :, None, None] * ij[:, None]).reshape(len(sides), len(CORNERS))


_SIDES = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])  # within the cell; on its first side; second
_CASES = np.stack([_SIDES[np.arange(27) // power % 3] for power in (1, 3, 9)], axis=2)
ZEROS_LAST = np.argsort(corner_weights(_CASES) == 0.0, axis=1, kind="stable")  # (27, 8) corners, by case


def grid_over(origin: F64, extent: F64, spacing: F64) -> BackgroundGrid:
    """The grid of this spacing that covers a box."""
    cells = np.maximum(np.ceil(extent / spacing - ON_NODE), 1).astype(np.int64)
    return BackgroundGrid(origin, spacing, cells + 1)


class Prolongator(Struct, frozen=True):
    """P from the grid nodes of one rank to its fine nodes."""

    parent: I32  # (n_fine, 8) local grid nodes
    weight: NDArray[np.float32]  # (n_fine, 8), zeros last
    numbers: I64  # (n_coarse,) of the grid's nodes, plus grid.size times the piece's name; interior first
    sharing: Sharing  # of these nodes
    n_interior: int  # grid nodes on this rank only

    @property
    def n_coarse(self) -> int:
        return len(self.numbers)


def prolongator(
    interface: Interface, grid: BackgroundGrid, x: F64, name: I64, pattern: tuple[I64, I32, I32]
) -> Prolongator:
    """From a grid to the named nodes at x (n, 3), connected by a pattern. Collective."""
    corner, exact = grid.weights(x)
    weight = kernels.empty(exact.shape, "float32")
    weight[:] = exact
    root, least = kernels.pieces(*pattern, (name % KINDS).astype(np.uint8), name, corner, weight)
    _join(interface, root, least.reshape(-1))
    if grid.counts.max() <= 2:  # the last grid has one node in each corner of the body's box
        least[:] = 0
    first = np.flatnonzero((root.reshape(-1) == np.arange(root.size)) & (weight.reshape(-1) > 0.0))
    names = corner.reshape(-1)[first] + grid.size * least.reshape(-1)[first]
    used, back = np.unique(names, return_inverse=True)
    sharing = find_sharing(interface.comm, used)
    order = np.lexsort((used % grid.size, sharing.sharers > 1))  # new -> old; neighbours near each other
    position = np.empty(order.size, np.int32)
    position[order] = np.arange(order.size, dtype=np.int32)
    at = np.zeros(root.size, np.int32)
    at[first] = position[back.reshape(-1)]
    moved = Sharing(
        sharing.ranks,
        tuple(np.ascontiguousarray(position[nodes]) for nodes in sharing.nodes),
        sharing.sharers[order],
        sharing.owned[order],
    )
    return Prolongator(at[root], weight, used[order], moved, int((sharing.sharers == 1).sum()))


def _join(interface: Interface, root: I32, least: I64) -> None:
    """Lower, in place, the least names of pieces to those of all ranks. Collective.

    Pieces apart here may be connected through others: a lower
    name may take several steps.
    """
    comm = interface.comm
    while comm.size > 1:
        before = least.copy()
        theirs = least[root].astype(np.float64)
        for columns in (slice(0, 3), slice(3, 6), slice(5, 8)):  # names as components of a vector
            copies = interface.copies(np.ascontiguousarray(theirs[:, columns]).reshape(-1))
            for nodes, (_, values) in zip(interface.nodes, copies):
                np.minimum.at(least, root[nodes, columns], values.reshape(-1, 3).astype(np.int64))
        if not comm.allreduce(int((least < before).any())):
            return
