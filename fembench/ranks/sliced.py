"""A sliced mesh, partitioned and distributed without any rank holding it.

Every rank reads a slice of the corners, and all cut them together (partition/rcb.py).
Then each reads its slice of the cells piece by piece and sends every cell to the rank
of its part, once. Nodes come from the ranks that read them. What a rank holds at any
time is its slice or its part, never the mesh.
"""

from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from fembench.base.arrays import F64, I32, I64, Mask
from fembench.kernels.backend import kernels
from fembench.mesh.sliced import BLOCK, BOUNDARY, Sliced, tagged
from fembench.partition.methods import check_parts_fit
from fembench.partition.rcb import apportion, bisect
from fembench.ranks.comm import MAX, SUM, Comm, together
from fembench.ranks.piece import Piece, TagMasks
from fembench.ranks.subdomain import exchange, find_sharing

BATCH = BLOCK  # cells or nodes that a rank reads and sends at once: whole blocks
SPREAD = 4  # entries of a table of nodes for each entry of the cells; beyond, nodes are sorted


class RanksWorld:
    """The `World` of a communicator."""

    def __init__(self, comm: Comm) -> None:
        self.comm = comm

    def sum(self, values: np.ndarray) -> np.ndarray:
        return self._reduced(values, SUM)

    def max(self, values: np.ndarray) -> np.ndarray:
        return self._reduced(values, MAX)

    def _reduced(self, values: np.ndarray, operation: Any) -> np.ndarray:
        out = np.empty(values.shape, values.dtype)
        self.comm.Allreduce(np.ascontiguousarray(values), out, operation)
        return out

    def rows(self, own: np.ndarray) -> np.ndarray:
        return np.concatenate(self.comm.allgather(own))

    def holders(self, numbers: I64) -> tuple[Mask, I64]:
        sharing = find_sharing(self.comm, numbers)
        return sharing.owned, sharing.sharers.astype(np.int64)


class Cells(Struct, frozen=True):
    """The cells of this rank's part, ascending, with what travels with them."""

    numbers: I32  # (n,)
    nodes: I32  # (n, nodes of the element) global; `sliced_piece` makes them local
    facets: I32  # (k, 3) cell, local facet, tag; ascending
    kinds: I32  # (k, 2) cell, cell tag
    parts: NDArray[np.integer]  # (n,) connected part of each; all 0 if there is one


def read_slice(comm: Comm, mesh: Sliced) -> I32:
    """(n, 3) the lowest corners of this rank's slice of the cells, in steps. Collective."""
    return together(comm, lambda: mesh.rows("corners", *mesh.share("cells", comm.rank, comm.size)))


def cut_slice(comm: Comm, mesh: Sliced, steps: I32, targets: tuple[float, ...]) -> I32:
    """(n,) the part of each cell in the slice. Collective; raises InputError on all ranks."""
    check_parts_fit(len(targets), mesh.n_cells)
    low, _ = mesh.share("cells", comm.rank, comm.size)
    return bisect(steps, low, apportion(targets, mesh.n_cells), RanksWorld(comm))


def migrate(comm: Comm, mesh: Sliced, part: I32) -> Cells:
    """Send each cell of the slice to its part's rank: those that arrive. Collective."""
    low, high = mesh.share("cells", comm.rank, comm.size)
    sent = np.bincount(part, minlength=comm.size)
    received = np.empty(comm.size, np.int64)
    comm.Alltoall(sent, received)
    place = np.cumsum([0, *received[:-1]])  # cells from each rank are together
    n = int(received.sum())
    several = mesh.manifest.n_parts > 1
    numbers = np.empty(n, np.int32)
    nodes = np.empty((n, mesh.columns), np.int32)
    parts = np.zeros(n if several else 1, np.int32)
    for at in range(0, int(comm.allreduce(high - low, MAX)), BATCH):
        first = min(low + at, high)
        last = min(low + at + BATCH, high)
        rows = together(comm, partial(_numbered_cells, mesh, first, last))
        arrived, counts = to_parts(comm, rows, part[first - low : last - low])
        for source, batch in enumerate(np.split(arrived, np.cumsum(counts)[:-1])):
            there = slice(place[source], place[source] + len(batch))
            numbers[there], nodes[there] = batch[:, 0], batch[:, 1 : 1 + mesh.columns]
            if several:
                parts[there] = batch[:, -1]
            place[source] = there.stop
    facets, kinds = (_arrived(comm, mesh, name, part) for name in ("facets", "kinds"))
    return Cells(numbers, nodes, facets, kinds, np.broadcast_to(parts, n))


def _arrived(comm: Comm, mesh: Sliced, name: str, part: I32) -> I32:
    """The rows that begin with a cell of this rank's part, ascending. Collective."""
    low, high = mesh.share("cells", comm.rank, comm.size)
    rows = together(comm, lambda: mesh.rows_between(name, low, high))
    rows, _ = to_parts(comm, rows, part[rows[:, 0] - low])
    return rows[np.lexsort(rows.T[::-1])]


def _numbered_cells(mesh: Sliced, first: int, last: int) -> I32:
    """Rows of number, nodes and, if there are several, connected part."""
    columns = [np.arange(first, last, dtype=np.int32)[:, None], mesh.rows("cells", first, last)]
    if mesh.manifest.n_parts > 1:
        columns.append(mesh.rows("parts", first, last))
    return np.hstack(columns)


def to_parts(comm: Comm, rows: np.ndarray, part: I32) -> tuple[np.ndarray, I64]:
    """Send row i to rank part[i]: the rows received, by source, and how many. Collective."""
    order = np.argsort(part, kind="stable")
    width = rows.shape[1]
    values, counts = exchange(
        comm, rows.take(order, axis=0).ravel(), width * np.bincount(part, minlength=comm.size)
    )
    return values.reshape(-1, width), counts // width


def sliced_piece(comm: Comm, mesh: Sliced, cells: Cells) -> Piece:
    """The piece of this rank, with its nodes from the ranks that read them. Collective."""
    nodes, local = _numbering(cells.nodes)
    x, marks = _fetch_nodes(comm, mesh, nodes)
    m = mesh.manifest
    names = (*m.node_tags, *m.facet_tags, BOUNDARY)
    node_tags: dict[str, I64] = {}
    for k, name in enumerate(names):
        marked = np.flatnonzero(marks[:, k // 63] & 1 << k % 63)
        node_tags[name] = np.append(node_tags.get(name, marked[:0]), marked)
    del marks
    own = cells.facets.copy()
    own[:, 0] = np.searchsorted(cells.numbers, own[:, 0])
    kinds = {tag: cells.kinds[cells.kinds[:, 1] == k, 0] for k, tag in enumerate(m.cell_tags)}
    return Piece(
        element=m.element,
        x=x,
        cells=local,
        global_nodes=nodes,
        global_cells=cells.numbers,
        node_tags=TagMasks(len(nodes), node_tags),
        facet_tags={
            name: tagged(local, m.element, own[own[:, 2] == k])
            for k, name in enumerate((*m.facet_tags, BOUNDARY))
        },
        cell_tags={tag: np.isin(cells.numbers, tagged) for tag, tagged in kinds.items()},
    )


def _numbering(cells: I32) -> tuple[I32, I32]:
    """(the cells' global nodes, ascending; the cells in local numbers)."""
    low, high = int(cells.min()), int(cells.max()) + 1
    if high - low > SPREAD * cells.size:
        nodes, local = np.unique(cells, return_inverse=True)
        return nodes, local.reshape(cells.shape).astype(np.int32)
    found = np.flatnonzero(kernels.held_nodes(cells, low, high)).astype(np.int32)
    table = np.empty(high - low, np.int32)
    table[found] = np.arange(len(found), dtype=np.int32)
    kernels.renumber(cells, table, low)
    found += low
    return found, cells


def _fetch_nodes(comm: Comm, mesh: Sliced, nodes: I32) -> tuple[F64, I64]:
    """Coordinates (n, 3) and marks (n, words) of these nodes, in batches. Collective."""
    slices = [mesh.share("nodes", rank, comm.size) for rank in range(comm.size)]
    x = np.empty((len(nodes), 3))
    marks = np.empty((len(nodes), _words(mesh)), np.int64)
    for at in range(0, max(high - low for low, high in slices), BATCH):
        ranges = [(min(low + at, high), min(low + at + BATCH, high)) for low, high in slices]
        first, last = np.searchsorted(nodes, np.array(ranges, np.int32)).T  # one type: no copy
        here = np.concatenate([np.arange(a, b) for a, b in zip(first, last)])
        asked, counts = exchange(comm, nodes[here], last - first)
        rows = together(comm, partial(_marked_nodes, mesh, *ranges[comm.rank]))[asked - ranges[comm.rank][0]]
        answer, _ = exchange(comm, rows.ravel(), rows.shape[1] * counts)
        rows = answer.reshape(-1, rows.shape[1])
        x[here], marks[here] = rows[:, :3].view(np.float64), rows[:, 3:]
    return x, marks


def _words(mesh: Sliced) -> int:
    """Whole numbers, one bit for each mark: names of nodes and facets, the boundary."""
    return -(-_n_marks(mesh) // 63)


def _marked_nodes(mesh: Sliced, low: int, high: int) -> I64:
    """Rows of coordinates (the bits of float64) and of bits, one for each mark."""
    marks = mesh.rows_between("marks", low, high)
    rows = np.zeros((high - low, 3 + _words(mesh)), np.int64)
    rows[:, :3] = mesh.rows("nodes", low, high).view(np.int64)
    for k in range(_n_marks(mesh)):
        rows[marks[marks[:, 1] == k, 0] - low, 3 + k // 63] |= 1 << (k % 63)
    return rows


def _n_marks(mesh: Sliced) -> int:
    return len(mesh.manifest.node_tags) + len(mesh.manifest.facet_tags) + 1
