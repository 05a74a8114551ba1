"""Over-decomposition: every rank cuts its part into c blocks (V = c P), which migrate.

Block g starts on rank g // c. A block is a Subdomain like that of a rank in a run on V
ranks: its nodes are numbered interior | interface | restrained, and its neighbours are
blocks. Code that works on a rank's cells therefore works on a block. With c = 1, the
block is the rank's own subdomain.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fembench.base.arrays import F64, I32, I64
from fembench.base.errors import InputError
from fembench.mesh.mesh import Mesh
from fembench.partition.methods import partition
from fembench.ranks.interface import Interface
from fembench.ranks.piece import Piece, rows_in_space
from fembench.ranks.subdomain import Sharing, Subdomain, build_subdomain

MOST = 52  # blocks per rank: the set of blocks at a node is sent as the bits of one double


@dataclass(frozen=True)
class BlockPlan:
    """One block on the rank where it starts."""

    id: int
    sub: Subdomain
    sharing: Sharing  # its `ranks` are the neighbour blocks
    rhs: F64  # (3 n_active,) unsummed right-hand side
    at_home: I64  # (n_active,) the same nodes in the subdomain of its home rank


def decompose(sub: Subdomain, interface: Interface, rhs: F64, c: int, seed: int = 0) -> list[BlockPlan]:
    """The c blocks of this rank. Collective. Raises InputError if its part is too small."""
    if not 1 <= c <= MOST:
        raise InputError(f"blocks_per_rank = {c}: expected 1 to {MOST}")
    if c == 1:
        return [_whole(sub, interface, rhs)]
    part = _cut(sub, c, seed)
    mine = _masks(sub, part, c)
    others = _neighbour_masks(interface, mine)
    first = interface.comm.rank * c
    return [_block(sub, part, mine, others, rhs, k, c, first) for k in range(c)]


def _whole(sub: Subdomain, interface: Interface, rhs: F64) -> BlockPlan:
    n = sub.n_active
    sharing = Sharing(interface.neighbours, tuple(interface.nodes), sub.sharers[:n], sub.owned_nodes[:n])
    return BlockPlan(interface.comm.rank, sub, sharing, rhs, np.arange(n))


def _cut(sub: Subdomain, c: int, seed: int) -> I32:
    """(n_cells,) block of each cell, from a partition of the rank's cells in equal parts."""
    mesh = Mesh(sub.x.copy(), sub.cells.copy(), sub.element, "part")
    return partition(mesh, (1 / c,) * c, seed=seed).part_of_cell


def _masks(sub: Subdomain, part: I32, c: int) -> I64:
    """(n_nodes,) the rank's blocks that contain each node, as bits: bit k for block k."""
    mask = np.zeros(sub.n_nodes, np.int64)
    for k in range(c):
        held = np.zeros(sub.n_nodes, bool)
        held[sub.cells[part == k].ravel()] = True
        mask |= held.astype(np.int64) << k
    return mask


def _neighbour_masks(interface: Interface, mine: I64) -> list[tuple[int, NDArray, NDArray]]:
    """[(rank, nodes shared with it, its masks there)], ascending. Collective."""
    v = np.zeros(interface.n_dofs)
    v[::3] = mine[: interface.n_dofs // 3]
    theirs = interface.copies(v)
    return [
        (rank, nodes, values[::3].astype(np.int64))
        for rank, nodes, (_, values) in zip(interface.neighbours, interface.nodes, theirs)
    ]


def _block(
    sub: Subdomain,
    part: I32,
    mine: I64,
    others: list[tuple[int, NDArray, NDArray]],
    rhs: F64,
    k: int,
    c: int,
    first: int,
) -> BlockPlan:
    held = np.flatnonzero(mine >> k & 1)
    held = held[np.argsort(sub.global_nodes[held])]
    position = np.full(sub.n_nodes, -1, np.int32)
    position[held] = np.arange(held.size, dtype=np.int32)
    cells = np.flatnonzero(part == k)
    piece = Piece(
        element=sub.element,
        x=np.ascontiguousarray(sub.x[held]),
        cells=position[sub.cells[cells]],
        global_nodes=sub.global_nodes[held],
        global_cells=sub.global_cells[cells],
        node_tags={},
        facet_tags={},
        cell_tags={name: mask[cells] for name, mask in sub.cell_tags.items()},
    )
    block, active = build_subdomain(
        piece,
        _sharing(mine, others, held, position, k, c, first),
        sub.restrained[held],
        rows_in_space,
    )
    at_home = held[np.searchsorted(piece.global_nodes, block.global_nodes[: block.n_active])]
    # the load of a node goes to the lowest of the rank's blocks at that node
    lowest = (mine[at_home] & -mine[at_home]) == 1 << k
    load = np.where(lowest[:, None], rhs.reshape(-1, 3)[at_home], 0.0)
    return BlockPlan(first + k, block, active, load.ravel(), at_home)


def _sharing(
    mine: I64,
    others: list[tuple[int, NDArray, NDArray]],
    held: NDArray,
    position: I32,
    k: int,
    c: int,
    first: int,
) -> Sharing:
    """The sharing of the rank's block k; its neighbours are blocks here and on others."""
    found: dict[int, I32] = {}
    for b in range(c):
        if b != k:
            found[first + b] = np.sort(position[held[(mine[held] >> b & 1).astype(bool)]])
    for rank, nodes, masks in others:
        at = position[nodes]
        for b in range(c):
            shared = at[(at >= 0) & (masks >> b & 1).astype(bool)]
            found[rank * c + b] = np.sort(shared)
    found = {block: nodes for block, nodes in sorted(found.items()) if nodes.size}
    sharers = np.ones(held.size, np.int32)
    owned = np.ones(held.size, bool)
    for block, nodes in found.items():
        sharers[nodes] += 1
        owned[nodes] &= block > first + k
    return Sharing(tuple(found), tuple(found.values()), sharers, owned)
