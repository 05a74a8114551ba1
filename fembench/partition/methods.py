"""Partitions by name: `metis` (graph, the default), `rcb` (coordinates), for shares.

The only importer of pymetis. The result of METIS is always checked: an empty part gets a
cell, and if a target is missed by more than MISS, METIS' other method is tried and the
better partition kept.

Recursive bisection meets the shares to a fraction of a percent and is used unless there
are many parts and cells; then k-way is several times faster. Small graphs are cut
several times and the best cut is kept, since cutting them is cheap.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.mesh.facets import DualGraph, dual_graph
from fembench.mesh.mesh import Mesh
from fembench.mesh.sliced import lowest_corners
from fembench.partition.partition import Partition
from fembench.partition.rcb import apportion, bisect_coordinates
from fembench.partition.shares import normalise

RECURSIVE_PARTS = 8  # always recursive up to here
RECURSIVE_WORK = 1_000_000  # cells x levels of bisection: always recursive up to here
KWAY_SLACK = 10  # per mille by which k-way may exceed a target
FREE_WORK = 300_000  # cells x levels that may be spent on trying further cuts


def prefers_recursive(n_cells: int, n_parts: int) -> bool:
    """Whether recursive bisection is affordable."""
    return n_parts <= RECURSIVE_PARTS or n_cells * math.log2(n_parts) <= RECURSIVE_WORK


def load_metis() -> None:
    """Import the library, before a clock runs."""
    import pymetis  # noqa: F401


def cut_graph(graph: DualGraph, targets: Sequence[float], seed: int, recursive: bool) -> np.ndarray:
    """(n_cells,) int32 parts of the vertices. METIS may leave parts empty or miss targets."""
    import pymetis

    n_cells, n_parts = len(graph.starts) - 1, len(targets)
    options = pymetis.Options(seed=seed + 1)  # the C library takes 0 and 1 for the same seed
    options.ncuts = min(max(int(FREE_WORK / (n_cells * math.log2(n_parts))), 1), 10)
    if not recursive:
        options.ufactor = KWAY_SLACK
    kind = pymetis.zero_copy_dtype()
    adjacency = pymetis.CSRAdjacency(
        graph.starts.astype(kind, copy=False), graph.neighbours.astype(kind, copy=False)
    )
    result = pymetis.part_graph(
        n_parts, adjacency, tpwgts=list(targets), recursive=recursive, options=options
    )
    return np.array(result.vertex_part, dtype=np.int32)


MISS = 0.02  # of a target, beyond one cell
LARGEST_SEED = 2**31 - 1


def partition(mesh: Mesh, targets: Sequence[float], method: str = "metis", seed: int = 0) -> Partition:
    """A part for every cell, part p close to the share targets[p] of the cells, none empty.

    Raises InputError: unknown method, shares not positive, more parts than cells.
    """
    if method not in METHODS:
        raise InputError(f"unknown partition method '{method}'; expected {' or '.join(METHODS)}")
    if not 0 <= seed < LARGEST_SEED:
        raise InputError(f"partition seed {seed}; expected 0 to {LARGEST_SEED - 1}")
    shares = normalise(targets)
    check_parts_fit(len(shares), mesh.n_cells)
    if len(shares) == 1:
        return Partition(np.zeros(mesh.n_cells, dtype=np.int32), shares, method, seed)
    return Partition(METHODS[method](mesh, shares, seed), shares, method, seed)


def check_parts_fit(n_parts: int, n_cells: int) -> None:
    """Raises InputError if there are more parts than cells."""
    if n_parts > n_cells:
        raise InputError(
            f"{plural(n_parts, 'part')} of {plural(n_cells, 'cell')}; expected at most one part per cell"
        )


def _metis(mesh: Mesh, shares: tuple[float, ...], seed: int) -> np.ndarray:
    """(n_cells,) int32 from the dual graph."""
    graph = dual_graph(mesh.behind)
    recursive = prefers_recursive(mesh.n_cells, len(shares))
    part = fill_empty(cut_graph(graph, shares, seed, recursive), shares, graph)
    if excess(part, shares) <= MISS:
        return part
    other = fill_empty(cut_graph(graph, shares, seed, not recursive), shares, graph)
    return min(part, other, key=lambda p: excess(p, shares))


def _rcb(mesh: Mesh, shares: tuple[float, ...], seed: int) -> np.ndarray:
    """(n_cells,) int32 from the corners of the cells."""
    return bisect_coordinates(lowest_corners(mesh.x, mesh.cells), apportion(shares, mesh.n_cells))


METHODS: dict[str, Callable[[Mesh, tuple[float, ...], int], np.ndarray]] = {"metis": _metis, "rcb": _rcb}


def excess(part: np.ndarray, shares: Sequence[float]) -> float:
    """Largest relative miss of a target, less the one cell that rounding may cost."""
    wanted = np.array(shares) * len(part)
    miss = np.abs(np.bincount(part, minlength=len(shares)) - wanted)
    return float(np.max(np.maximum(miss - 1.0, 0.0) / wanted))


def fill_empty(part: np.ndarray, shares: Sequence[float], graph: DualGraph) -> np.ndarray:
    """(n_cells,) int32 the same parts, with one cell given to each empty part.

    It comes from the part most above its target: the cell with the fewest neighbours
    there.
    """
    sizes = np.bincount(part, minlength=len(shares))
    empty = np.flatnonzero(sizes == 0)
    if not len(empty):
        return part
    part = part.copy()
    owner = np.repeat(np.arange(len(part)), np.diff(graph.starts))
    wanted = np.array(shares) * len(part)
    for target in empty:
        giver = int(np.argmax(np.where(sizes > 1, sizes - wanted, -np.inf)))
        own = np.bincount(owner, part[graph.neighbours] == giver, len(part))
        cell = np.argmin(np.where(part == giver, own, np.inf))
        part[cell] = target
        sizes[giver] -= 1
        sizes[target] += 1
    return part
