"""Fingerprint of a solution: seeded random projections, the same for every partition up to rounding.

Weights come from the global number of a dof by a counter-based hash (splitmix64), so every rank
computes those of its own dofs without knowing the others. For zero-mean unit-variance weights w,
E[(w . (u - v))^2] = |u - v|^2: the root mean square of the differences of two fingerprints
estimates the distance between two solutions that were never on the same host.
"""

import numpy as np
from numpy.typing import NDArray

from fembench.ranks.comm import SUM, Comm

N_PROJECTIONS = 16
_CHUNK = 1 << 16


def weights(dofs: NDArray[np.int64], projection: int) -> NDArray[np.float64]:
    """(n,) weights of one projection, uniform with mean 0 and variance 1."""
    with np.errstate(over="ignore"):
        z = dofs.astype(np.uint64) * np.uint64(N_PROJECTIONS) + np.uint64(projection)
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z.astype(np.float64) / 2.0**63 - 1.0) * np.sqrt(3.0)


def fingerprint(comm: Comm, global_nodes: NDArray[np.int64], u: NDArray[np.float64]) -> tuple[float, ...]:
    """Projections of u (n, 3) at the nodes that this rank owns. Collective."""
    dofs = (3 * global_nodes[:, None] + np.arange(3)).ravel()
    values = u.ravel()
    local = np.zeros(N_PROJECTIONS)
    for start in range(0, dofs.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        local += [weights(dofs[part], k) @ values[part] for k in range(N_PROJECTIONS)]
    total = np.empty_like(local)
    comm.Allreduce(local, total, SUM)
    return tuple(total.tolist())
