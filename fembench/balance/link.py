"""Seconds per byte between ranks: a first estimate of the network."""

import time

import numpy as np

from fembench.ranks.comm import Comm

PROBE = 1 << 20  # bytes
PROBES = 4


def probe(comm: Comm) -> float:
    """Seconds per byte between neighbouring ranks of a ring: on the slowest link, the best of a few
    measurements. Collective."""
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
