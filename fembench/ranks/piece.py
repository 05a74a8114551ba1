"""Piece: one rank's cells as they leave the partition, and their distribution to the rank.

Its nodes are numbered by position, so that products find d and q in a cache.

Nodes are cut into slabs across the longest axis, each slab into rows across the second,
and numbered along the rows: on a box the natural order, on any mesh one like it. Slabs
and rows are one mean node distance thick and hold equal numbers of nodes, so graded
meshes do not pile up. No other order that was measured makes the product faster
(benchmarks/README.md); reverse Cuthill-McKee, which is as good, needs the cells
(`kernels.reorder`).
"""

import itertools
from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from fembench.base.arrays import F64, I32, I64, Mask
from fembench.base.errors import InputError
from fembench.mesh.facets import boundary_facets, locate_facets, nodes_of_tags
from fembench.mesh.mesh import Mesh
from fembench.mesh.sliced import BOUNDARY
from fembench.partition.partition import Partition
from fembench.ranks.comm import Comm, on_root


class TagMasks(Mapping[str, Mask]):
    """name -> (n_nodes,) which nodes have the tag; made when asked for."""

    def __init__(self, n_nodes: int, members: Mapping[str, NDArray[np.integer]]) -> None:
        self._n_nodes = n_nodes
        self._members = members

    def __getitem__(self, name: str) -> Mask:
        mask = np.zeros(self._n_nodes, bool)
        mask[self._members[name]] = True
        return mask

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


class Piece(Struct, frozen=True):
    """One part of a mesh in local node numbers, ascending by global number."""

    element: str
    x: F64  # (n_nodes, 3)
    cells: I32  # (n_cells, nodes_per_cell)
    global_nodes: NDArray[np.integer]  # (n_nodes,)
    global_cells: NDArray[np.integer]  # (n_cells,)
    node_tags: Mapping[str, Mask]  # name -> (n_nodes,) mask; facet tags' nodes too
    facet_tags: Mapping[str, I32]  # name -> (n, 3|4) facets of this piece's own cells
    cell_tags: Mapping[str, Mask] = field(default_factory=dict)  # name -> (n_cells,) mask


class TaggedFacets(Struct, frozen=True):
    """Facets of the whole mesh under one name, each with the cell that owns it."""

    facets: I32  # (n, 3|4) global nodes
    cell: I64  # (n,)


def tagged_facets(mesh: Mesh, *, with_boundary: bool) -> dict[str, TaggedFacets]:
    """Facet tags of the mesh with their owning cells.

    The reserved tag "boundary" is made only on request: it sorts every facet of the mesh.
    """
    tags = {name: _with_owner(mesh, facets) for name, facets in mesh.facet_tags.items()}
    if with_boundary:
        if BOUNDARY in tags or BOUNDARY in mesh.node_tags:
            raise InputError(
                f"mesh '{mesh.name}': tag '{BOUNDARY}' is reserved for the whole boundary; rename it"
            )
        facets, cell = boundary_facets(mesh.cells, mesh.element, mesh.behind)
        tags[BOUNDARY] = TaggedFacets(facets, cell.astype(np.int64))
    return tags


def _with_owner(mesh: Mesh, facets: I32) -> TaggedFacets:
    """Facets between two cells belong to the lower one, so that each is loaded once."""
    cell, _ = locate_facets(mesh.cells, mesh.element, facets)
    return TaggedFacets(facets, cell.astype(np.int64))


def extract(mesh: Mesh, partition: Partition, rank: int, facets: Mapping[str, TaggedFacets]) -> Piece:
    """The piece of part `rank`."""
    mine = np.flatnonzero(partition.part_of_cell == rank)
    cells = mesh.cells[mine]
    held = np.zeros(mesh.n_nodes, bool)
    held[cells.ravel()] = True
    nodes = np.flatnonzero(held)
    local = np.full(mesh.n_nodes, -1, np.int32)
    local[nodes] = np.arange(nodes.size, dtype=np.int32)
    tagged_nodes = nodes_of_tags(mesh.node_tags, {name: tagged.facets for name, tagged in facets.items()})
    here = {name: local[tagged] for name, tagged in tagged_nodes.items()}
    facet_tags = {}
    for name, tagged in facets.items():
        own = partition.part_of_cell[tagged.cell] == rank
        facet_tags[name] = local[tagged.facets[own]]
    return Piece(
        element=mesh.element,
        x=mesh.x[nodes],
        cells=local[cells],
        global_nodes=nodes.astype(np.int64),
        global_cells=mine.astype(np.int64),
        node_tags=TagMasks(nodes.size, {name: found[found >= 0] for name, found in here.items()}),
        facet_tags=facet_tags,
        cell_tags={name: np.isin(mine, tagged) for name, tagged in mesh.cell_tags.items()},
    )


def scatter(comm: Comm, mesh: Mesh | None, partition: Partition | None, *, with_boundary: bool) -> Piece:
    """This rank's piece; mesh and partition are used on rank 0 only. Collective."""
    facets = on_root(comm, lambda: tagged_facets(mesh, with_boundary=with_boundary) if mesh else {})
    if facets is None or mesh is None or partition is None:
        return comm.recv(source=0)
    for rank in range(1, comm.size):
        comm.send(extract(mesh, partition, rank, facets), dest=rank)
    return extract(mesh, partition, 0, facets)


def rows_in_space(x: F64, *ends: int) -> I32:
    """New position (ends[-1],) of each node before the last end; x (n_nodes, 3).

    The ranges [0, ends[0]), [ends[0], ends[1]), … are numbered apart.
    """
    extent = np.array([np.ptp(column) if len(x) else 0.0 for column in x.T])  # along axis 0: 20 times slower
    distance = _mean_distance(extent, len(x))
    position = np.empty(ends[-1], np.int32)
    for low, high in itertools.pairwise((0, *ends)):
        order = _along_rows(x[low:high], np.argsort(-extent, kind="stable"), distance)
        position[low + order] = np.arange(low, high, dtype=np.int32)
    return position


def _mean_distance(extent: F64, n: int) -> float:
    """h of a grid of n nodes with planes at both ends: the product of extent / h + 1 is n."""
    low = 1e-9 * float(extent.max(initial=0))
    high = float(extent.max(initial=0)) or 1.0
    for _ in range(60):
        h = (low + high) / 2
        low, high = (h, high) if np.prod(extent / h + 1) > n else (low, h)
    return high


def _along_rows(x: F64, axes: NDArray[np.intp], distance: float) -> I32:
    """Order of nodes by slab, row and place along the row. Slab by slab, in a cache."""
    if not len(x):
        return np.zeros(0, np.int32)
    a, b, c = axes
    n_slabs, n_rows = (round(float(np.ptp(x[:, axis])) / distance) + 1 for axis in (a, b))
    order = np.argsort(x[:, a], kind="stable").astype(np.int32)
    ends = -(-np.arange(n_slabs + 1) * len(x) // n_slabs)
    for low, high in itertools.pairwise(ends):
        nodes = np.sort(order[low:high])
        row = np.empty(len(nodes), np.int32)
        row[np.argsort(x[nodes, b], kind="stable")] = np.arange(len(nodes)) * n_rows // len(nodes)
        order[low:high] = nodes[np.lexsort((x[nodes, c], row))]
    return order
