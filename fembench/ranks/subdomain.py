"""Subdomain: one rank's cells and nodes, nodes numbered interior | interface | restrained.

A node on the interface lives on every rank that shares it; there are no ghosts and no
owned rows. The rank's stiffness is that of its own cells alone (A_p, B_p, A_s of
Ferreira 2006, section 2.6). Vectors on a rank are flat float64 of shape (3 *
n_active,), node-major. A restrained dof of an active node carries zero: its row and
column of A are zeroed, so the iterates are those of the reduced system.

Which ranks share which nodes is found although no rank holds the whole mesh, by a
rendezvous: each rank is in charge of a range of global numbers, all ranges equally
long. Every rank reports its nodes there and receives, for each node that other ranks
also hold, the numbers of these ranks. Volume per rank is about its own number of nodes,
whatever the size of the whole mesh.
"""

from collections.abc import Callable, Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fembench.base.arrays import F64, I32, I64, Mask
from fembench.kernels.backend import kernels
from fembench.ranks.comm import MAX, Comm
from fembench.ranks.piece import Piece, TagMasks


class Sharing(Struct, frozen=True):
    """For each pair (this rank, another rank) the nodes that both hold."""

    ranks: tuple[int, ...]  # ascending, without this one
    nodes: tuple[I32, ...]  # [neighbour] positions in the rank's global_nodes
    sharers: NDArray[np.integer]  # (n_nodes,) how many ranks hold the node, this one included
    owned: Mask  # (n_nodes,) this rank is the lowest that holds the node


def find_sharing(comm: Comm, global_nodes: NDArray[np.integer]) -> Sharing:
    """Sharing of the nodes (n_nodes,), each global number once per rank. Collective."""
    ascending, order = global_nodes, None
    if (global_nodes[1:] < global_nodes[:-1]).any():
        order = np.argsort(global_nodes, kind="stable").astype(np.int32)
        ascending = global_nodes[order]
    pairs = _meet(comm, ascending)
    numbers, others = pairs[:, 0], pairs[:, 1]
    by_rank = np.lexsort((numbers, others))
    numbers, others = numbers[by_rank], others[by_rank]
    position = np.searchsorted(ascending, numbers.astype(ascending.dtype)).astype(np.int32)
    if order is not None:
        position = order[position]
    ranks, first = np.unique(others, return_index=True)
    sharers = np.ones(global_nodes.size, np.min_scalar_type(comm.size))  # one byte up to 255 ranks
    np.add.at(sharers, position, 1)
    owned = np.ones(global_nodes.size, bool)
    owned[position[others < comm.rank]] = False
    return Sharing(
        ranks=tuple(int(r) for r in ranks),
        nodes=tuple(np.split(position, first[1:])) if ranks.size else (),
        sharers=sharers,
        owned=owned,
    )


def _meet(comm: Comm, numbers: NDArray[np.integer]) -> I64:
    """(n, 2) ascending pairs (global node, other rank that holds it)."""
    largest = comm.allreduce(int(numbers.max(initial=0)), MAX)
    begins = np.minimum((largest // comm.size + 1) * np.arange(1, comm.size), largest)
    ends = np.searchsorted(numbers, begins.astype(numbers.dtype))
    received, counts = exchange(comm, numbers, np.diff([0, *ends, numbers.size]))
    replies, destinations = _introductions(*_in_several(received, counts))
    del received
    order = np.argsort(destinations, kind="stable")
    answer, _ = exchange(comm, replies[order].ravel(), 2 * np.bincount(destinations, minlength=comm.size))
    return answer.reshape(-1, 2)


def _in_several(numbers: NDArray[np.integer], counts: I64) -> tuple[NDArray[np.integer], I64]:
    """(number, rank that reported it) of nodes that several reported, counts[rank] each."""
    order = np.argsort(numbers, kind="stable").astype(np.int32)
    ascending = numbers[order]
    equal = np.append(False, ascending[1:] == ascending[:-1])[: len(numbers)]
    several = order[equal | np.append(equal[1:], False)[: len(numbers)]]
    return numbers[several], np.searchsorted(np.cumsum(counts), several, side="right")


def _introductions(numbers: NDArray[np.integer], source: I64) -> tuple[I64, I64]:
    """For each (node, rank) and each other rank of that node: ((node, other), rank)."""
    order = np.lexsort((source, numbers))
    numbers, source = numbers[order], source[order]
    fresh = (
        np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]]) if numbers.size else np.zeros(0, np.int64)
    )
    group_size = np.diff(np.r_[fresh, numbers.size])
    size = np.repeat(group_size, group_size)
    start = np.repeat(fresh, group_size)
    place = np.arange(numbers.size) - start
    replies = [np.zeros((0, 2), np.int64)]
    destinations = [np.zeros(0, np.int64)]
    for step in range(1, int(group_size.max(initial=1))):
        member = np.flatnonzero(size > step)
        other = start[member] + (place[member] + step) % size[member]
        replies.append(np.column_stack((numbers[member], source[other])))
        destinations.append(source[member])
    return np.concatenate(replies), np.concatenate(destinations)


def exchange(comm: Comm, values: np.ndarray, counts: NDArray[np.integer]) -> tuple[np.ndarray, I64]:
    """Send counts[p] numbers in turn to rank p; (received, counts by source). Collective."""
    send = np.ascontiguousarray(counts, np.int64)
    receive = np.empty_like(send)
    comm.Alltoall(send, receive)
    out = np.empty(int(receive.sum()), values.dtype)
    comm.Alltoallv(
        [np.ascontiguousarray(values), (send, _offsets(send))], [out, (receive, _offsets(receive))]
    )
    return out, receive


def _offsets(counts: I64) -> I64:
    return np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.int64)


INSIDE, BESIDE, SHARED, DROPPED = range(4)  # interior nodes, those beside shared ones, interface
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
