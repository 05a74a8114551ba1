"""Subdomain: one rank's cells and nodes, nodes numbered interior | interface | restrained.

A node on the interface lives on every rank that shares it; there are no ghosts and no
owned rows. The rank's stiffness is that of its own cells alone (A_p, B_p, A_s of
Ferreira 2006, section 2.6). Vectors on a rank are flat float64 of shape (3 *
n_active,), node-major. A restrained dof of an active node carries zero: its row and
column of A are zeroed, so the iterates are those of the reduced system.
"""

from collections.abc import Callable, Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fembench.base.arrays import F64, I32, Mask
from fembench.kernels.backend import kernels
from fembench.ranks.piece import Piece, TagMasks
from fembench.ranks.sharing import Sharing

INSIDE, BESIDE, SHARED, DROPPED = range(4)  # nodes: interior, interior with a shared neighbour, interface
Reorder = Callable[..., I32]  # (x, *ends of ranges) -> new positions


class Subdomain(Struct, frozen=True):
    """The cells and nodes of one rank."""

    element: str
    x: F64  # (n_nodes, 3)
    cells: I32  # (n_cells, nodes_per_cell), local nodes
    n_interior: int  # nodes [0, n_interior) are on this rank only
    n_active: int  # nodes [n_interior, n_active) are shared; the rest is fully restrained
    global_nodes: NDArray[np.integer]  # (n_nodes,)
    global_cells: NDArray[np.integer]  # (n_cells,)
    node_tags: Mapping[str, Mask]
    facet_tags: Mapping[str, I32]
    cell_tags: Mapping[str, Mask]
    owned_nodes: Mask  # (n_nodes,) this rank is the lowest sharer
    sharers: NDArray[np.integer]  # (n_nodes,) ranks that hold the node
    restrained: Mask  # (n_nodes, 3)

    @property
    def n_nodes(self) -> int:
        return len(self.x)

    @property
    def n_cells(self) -> int:
        return len(self.cells)

    @property
    def fixed(self) -> Mask:
        """(3 * n_active,) restrained dofs among the active nodes."""
        return self.restrained[: self.n_active].ravel()

    @property
    def n_free_owned(self) -> int:
        """Free dofs whose lowest sharer is this rank; over ranks, the equations."""
        return int((~self.restrained[self.owned_nodes]).sum())


def build_subdomain(
    piece: Piece,
    sharing: Sharing,
    restrained: Mask,
    reorder: Reorder | None = None,
) -> tuple[Subdomain, Sharing]:
    """Number the nodes of a piece, which is reordered in place: no rank holds it twice.

    That is its cells, their numbers, its coordinates and `restrained`, (n_nodes, 3) in
    piece order.

    `reorder(x, n_inside, n_interior, n_active)` returns the new position of each active
    node, keeping each within its range, so that neighbours come to lie near each other
    in memory. Interior nodes beside the interface, [n_inside, n_interior), are a range
    of their own: the product at the interface, which comes first, then does not go
    through all of memory. The second result is the sharing of the active nodes in the
    new numbers, each list still ascending by global number.
    """
    kind = _kinds(piece.cells, sharing.sharers > 1, restrained)
    order = np.argsort(kind, kind="stable").astype(np.int32)  # new -> old
    n_inside, n_interior, n_active = (int((kind <= last).sum()) for last in (INSIDE, BESIDE, SHARED))
    del kind
    x, cells = piece.x, piece.cells
    _reorder_rows(x, order)
    if reorder is not None and n_active:
        moved = _inverse(reorder(x, n_inside, n_interior, n_active))
        _reorder_rows(x[:n_active], moved)
        order[:n_active] = order[moved]
        del moved
    _reorder_rows(restrained, order)
    position = _inverse(order)  # old -> new
    kernels.renumber(cells, position)
    tagged = {name: piece.global_cells[mask] for name, mask in piece.cell_tags.items()}
    kernels.sort_cells(cells, piece.global_cells)  # assembly then goes through memory in order
    tags = {name: position[np.flatnonzero(mask)] for name, mask in piece.node_tags.items()}
    sub = Subdomain(
        element=piece.element,
        x=x,
        cells=cells,
        n_interior=n_interior,
        n_active=n_active,
        global_nodes=piece.global_nodes[order],
        global_cells=piece.global_cells,
        node_tags=TagMasks(len(x), tags),
        facet_tags={name: position[facets] for name, facets in piece.facet_tags.items()},
        cell_tags={name: np.isin(piece.global_cells, members) for name, members in tagged.items()},
        owned_nodes=sharing.owned[order],
        sharers=sharing.sharers[order],
        restrained=restrained,
    )
    return sub, _active_sharing(sharing, position, n_active, sub)


def _kinds(cells: I32, shared: Mask, restrained: Mask) -> NDArray[np.int8]:
    """(n_nodes,) kind of each node."""
    dropped = restrained.all(axis=1)
    kind = np.full(shared.size, INSIDE, np.int8)
    kind[cells[kernels.cells_meeting(cells, shared & ~dropped, 1)]] = BESIDE
    kind[shared], kind[dropped] = SHARED, DROPPED
    return kind


def _active_sharing(sharing: Sharing, position: I32, n_active: int, sub: Subdomain) -> Sharing:
    ranks, nodes = [], []
    for rank, old in zip(sharing.ranks, sharing.nodes):
        new = position[old]
        new = new[new < n_active]
        if new.size:
            ranks.append(rank)
            nodes.append(np.ascontiguousarray(new, np.int32))
    return Sharing(tuple(ranks), tuple(nodes), sub.sharers[:n_active], sub.owned_nodes[:n_active])


def _reorder_rows(rows: NDArray, order: I32) -> None:
    """Row k becomes the former row order[k], a column at a time."""
    for column in rows.T:
        column[:] = column[order]


def _inverse(order: NDArray) -> I32:
    inverse = np.empty(order.size, np.int32)
    inverse[order] = np.arange(order.size, dtype=np.int32)
    return inverse
