"""The only importer of pymetis: multilevel graph partitioning with target shares.

Recursive bisection meets the shares to a fraction of a percent and is used unless there
are many parts and cells; then k-way is several times faster. Small graphs are cut
several times and the best cut is kept, since cutting them is cheap.
"""

import math
from collections.abc import Sequence

import numpy as np

from fembench.mesh.facets import DualGraph

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
