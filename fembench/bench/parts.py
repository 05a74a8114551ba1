"""Facts about the resulting partition, gathered from the ranks; no rank needs the whole mesh."""

import numpy as np

from fembench.kernels.backend import kernels
from fembench.ranks.comm import Comm
from fembench.ranks.interface import Interface
from fembench.ranks.subdomain import Subdomain
from fembench.records.case import Case
from fembench.records.record import PartitionFacts


def partition_facts(
    comm: Comm, case: Case, sub: Subdomain, interface: Interface, targets: tuple[float, ...], cut: int
) -> PartitionFacts:
    """Shares, sizes and neighbours of every part. Collective."""
    rows = comm.allgather((_sizes(sub), interface.neighbours, interface.message_bytes))
    sizes = np.array([row[0] for row in rows]).T.tolist()
    cells, dofs, blocks, shared, shared_all = (tuple(column) for column in sizes)
    return PartitionFacts(
        method=case.placement.partitioner + (", replicated" if case.placement.replicated else ""),
        targets=targets,
        cells=cells,
        dofs=dofs,
        blocks=blocks,
        shared_dofs=shared,
        shared_dofs_all=shared_all,
        neighbours=tuple(row[1] for row in rows),
        message_bytes=tuple(row[2] for row in rows),
        cut=cut,
        seed=case.placement.seed,
    )


def _sizes(sub: Subdomain) -> tuple[int, int, int, int, int]:
    """(cells, free dofs, 3x3 blocks, shared free dofs, shared dofs) of this part."""
    free = ~sub.restrained
    shared = sub.sharers > 1
    return (
        sub.n_cells,
        int(free.sum()),
        kernels.count_blocks(sub.cells, sub.n_active),
        int(free[shared].sum()),
        3 * int(shared.sum()),
    )
