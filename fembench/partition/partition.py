"""Partition: the part of each cell, and the interfaces that result.

A part is a set of cells; a node is shared if cells of several parts meet in it. An
active node has at least one free dof; only active nodes take part in an interface.
"""

import numpy as np
from msgspec import Struct

from fembench.base.errors import InputError
from fembench.mesh.elements import element_named
from fembench.mesh.facets import facet_neighbours
from fembench.mesh.mesh import Mesh
from fembench.records.record import PartitionFacts

BYTES_PER_NODE = 3 * 8  # an update sends three doubles for each shared node


class Partition(Struct, frozen=True, eq=False):
    """A part for every cell. The array becomes read-only."""

    part_of_cell: np.ndarray  # (n_cells,) int32, 0 … n_parts - 1, no part empty
    targets: tuple[float, ...]  # target share of each part in cells, sum 1
    method: str
    seed: int = 0

    def __post_init__(self) -> None:
        self.part_of_cell.setflags(write=False)

    @property
    def n_parts(self) -> int:
        return len(self.targets)

    @property
    def sizes(self) -> np.ndarray:
        """(n_parts,) int64: cells of each part."""
        return np.bincount(self.part_of_cell, minlength=self.n_parts)

    @property
    def achieved(self) -> np.ndarray:
        """(n_parts,): achieved share of the cells of each part."""
        return self.sizes / len(self.part_of_cell)


def metrics(mesh: Mesh, partition: Partition, fixed: np.ndarray | None = None) -> PartitionFacts:
    """Sizes of the parts, of their interfaces and of their messages.

    fixed: bool, restrained nodes (n_nodes,) or restrained dofs (n_nodes, 3) or
    (3 n_nodes,); None: none.
    """
    free = _free_dofs(fixed, mesh.n_nodes)
    node, part = node_parts(mesh.cells, partition.part_of_cell, mesh.n_nodes)
    sharers = np.bincount(node, minlength=mesh.n_nodes)
    shared, active = sharers[node] > 1, free[node] > 0
    n = partition.n_parts
    neighbours, common = _neighbours(node[shared & active], part[shared & active], n)
    edges = _edges_of_parts(mesh, partition, free > 0)
    return PartitionFacts(
        method=partition.method,
        targets=partition.targets,
        cells=_ints(partition.sizes),
        dofs=_ints(np.bincount(part, free[node], n)),
        blocks=_ints(np.bincount(part[active], minlength=n) + 2 * edges),
        shared_dofs=_ints(np.bincount(part[shared], free[node[shared]], n)),
        shared_dofs_all=_ints(3 * np.bincount(part[shared], minlength=n)),
        neighbours=tuple(_ints(others) for others in neighbours),
        message_bytes=tuple(_ints(BYTES_PER_NODE * nodes) for nodes in common),
        cut=count_cut(mesh, partition, sharers > 1),
        seed=partition.seed,
    )


def node_parts(cells: np.ndarray, part_of_cell: np.ndarray, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Every pair (node, part that touches it) once, ascending: (n,), (n,) int64."""
    some = np.full(n_nodes, -1, dtype=part_of_cell.dtype)
    some[cells] = part_of_cell[:, None]  # one of the parts at each node
    shared = np.zeros(n_nodes, dtype=bool)
    shared[cells[some[cells] != part_of_cell[:, None]]] = True
    inner = np.flatnonzero(~shared & (some >= 0))
    cell, corner = np.nonzero(shared[cells])
    n_parts = int(part_of_cell.max(initial=0)) + 1
    keys = cells[cell, corner].astype(np.int64) * n_parts + part_of_cell[cell]
    keys = np.unique(np.concatenate([keys, inner * n_parts + some[inner]]))
    node, part = np.divmod(keys, n_parts)
    return node, part


def _free_dofs(fixed: np.ndarray | None, n_nodes: int) -> np.ndarray:
    """(n_nodes,) int64: free dofs of each node, 0 to 3."""
    if fixed is None:
        return np.full(n_nodes, 3)
    if fixed.shape == (n_nodes,):
        return np.where(fixed, 0, 3)
    if fixed.size != 3 * n_nodes:
        raise InputError(
            f"restrained mask of shape {fixed.shape}; expected {n_nodes} nodes or {3 * n_nodes} dofs"
        )
    return 3 - np.count_nonzero(fixed.reshape(n_nodes, 3), axis=1)


def _neighbours(
    node: np.ndarray, part: np.ndarray, n_parts: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """For each part: the parts that it shares nodes with, ascending, and how many.

    node, part: (n,) the pairs of shared nodes alone, ascending by node.
    """
    _, starts, counts = np.unique(node, return_index=True, return_counts=True)
    keys = [np.empty(0, dtype=np.int64)]
    for count in np.unique(counts):
        together = part[starts[counts == count][:, None] + np.arange(count)]  # (nodes, count)
        a, b = np.nonzero(~np.eye(count, dtype=bool))
        keys.append((together[:, a] * n_parts + together[:, b]).reshape(-1))
    pairs, nodes = np.unique(np.concatenate(keys), return_counts=True)
    borders = np.searchsorted(pairs, np.arange(1, n_parts) * n_parts)
    return np.split(pairs % n_parts, borders), np.split(nodes, borders)


def _edges_of_parts(mesh: Mesh, partition: Partition, active: np.ndarray) -> np.ndarray:
    """(n_parts,) int64: pairs of active nodes that some cell of the part joins."""
    a, b = np.triu_indices(element_named(mesh.element).nodes, 1)
    order = np.argsort(partition.part_of_cell, kind="stable")
    edges = np.zeros(partition.n_parts, dtype=np.int64)
    for part, cells in enumerate(np.split(order, np.cumsum(partition.sizes)[:-1])):
        nodes = np.sort(mesh.cells[cells], axis=1).astype(np.int64)
        keys = nodes[:, a] * mesh.n_nodes + nodes[:, b]
        if not active.all():
            keys = keys[active[nodes[:, a]] & active[nodes[:, b]]]
        keys = np.sort(keys, axis=None)
        edges[part] = np.count_nonzero(keys[1:] != keys[:-1]) + (keys.size > 0)
    return edges


def count_cut(mesh: Mesh, partition: Partition, shared: np.ndarray | None = None) -> int:
    """Facets between cells of different parts.

    shared: (n_nodes,) bool, computed if not given
    """
    if shared is None:
        shared = np.bincount(node_parts(mesh.cells, partition.part_of_cell, mesh.n_nodes)[0]) > 1
    corners = element_named(mesh.element).facets.shape[1]
    near = np.flatnonzero(np.count_nonzero(shared[mesh.cells], axis=1) >= corners)
    behind = facet_neighbours(mesh.cells[near], mesh.element)
    part = partition.part_of_cell[near]
    return int(np.count_nonzero((behind >= 0) & (part[behind] != part[:, None]))) // 2


def _ints(values: np.ndarray) -> tuple[int, ...]:
    return tuple(int(v) for v in values)
