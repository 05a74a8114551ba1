"""How long a byte takes from rank to rank: a first measure, before anything is known of the network."""

import time

import numpy as np

from fembench.ranks.comm import Comm

PROBE = 1 << 20  # bytes
PROBES = 4


def probe(comm: Comm) -> float:
    """Seconds a byte between neighbouring ranks of a ring, the slowest link's best of a few. Collective."""
    if comm.size == 1:
        return 0.0
    out, into = np.zeros(PROBE, np.uint8), np.empty(PROBE, np.uint8)
    best = float("inf")
    for _ in range(PROBES):
        comm.Barrier()
        begin = time.perf_counter()
        comm.Sendrecv(out, (comm.rank + 1) % comm.size, 9, into, (comm.rank - 1) % comm.size, 9)
        best = min(best, time.perf_counter() - begin)
    return max(comm.allgather(best)) / PROBE
