"""Measurements with many ranks: all-reduces, and messages of several pairs that share the network."""

import math
import time
from collections.abc import Sequence

import numpy as np

from fembench.characterize.pingpong import CONTROL, MESSAGE
from fembench.ranks.comm import MAX, Comm
from fembench.ranks.interface import AllReduce
from fembench.records.network import AllReduceTime
from fembench.stats.summary import median_interval
from fembench.timing.tracer import NullTracer

BATCH = 2e-3  # seconds of all-reduces between two stamps
WARM = 5
Pairs = tuple[tuple[int, int], ...]


def allreduce_time(comm: Comm, m: int, batches: int) -> AllReduceTime:
    """The time of an all-reduce of m bytes over the ranks of `comm`, in a sequence as in CG. Collective."""
    run = AllReduce(comm, m // 8, NullTracer()).run
    start = time.perf_counter()
    for _ in range(WARM):
        run()
    each = comm.bcast((time.perf_counter() - start) / WARM)
    turns = max(3, min(math.ceil(BATCH / each), 200))
    took = np.empty(batches)
    for k in range(batches):
        comm.Barrier()
        start = time.perf_counter()
        for _ in range(turns):
            run()
        took[k] = (time.perf_counter() - start) / turns
    slowest = np.empty_like(took)
    comm.Allreduce(took, slowest, MAX)
    interval = median_interval(slowest)
    return AllReduceTime(
        ranks=comm.size,
        m=m,
        seconds=float(np.median(slowest)),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
    )


def pairs_at_once(hosts: Sequence[int]) -> list[tuple[str, Pairs]]:
    """(place, pairs that can communicate at once), for ranks on hosts[rank]: inside a host, from one host to
    another, and between hosts that are all different. Only sets of at least two pairs."""
    ranks: dict[int, list[int]] = {}
    for rank, host in enumerate(hosts):
        ranks.setdefault(host, []).append(rank)
    by_size = sorted(ranks.values(), key=len, reverse=True)
    one, first = by_size[0], [members[0] for members in ranks.values()]
    found: list[tuple[str, Pairs]] = [("inside", tuple(zip(one[::2], one[1::2])))]
    if len(by_size) > 1:
        found.append(("between", tuple(zip(one, by_size[1]))))
    found.append(("apart", tuple(zip(first[::2], first[1::2]))))
    return [(where, pairs) for where, pairs in found if len(pairs) > 1]


def counts_of(pairs: Pairs) -> list[int]:
    """The numbers of pairs to measure at once: 2, 4, … and all."""
    powers = [1 << k for k in range(1, len(pairs).bit_length()) if 1 << k < len(pairs)]
    return [*powers, len(pairs)]


def message_seconds(comm: Comm, pairs: Pairs, m: int, trips: int) -> list[float]:
    """Seconds of each message of m bytes, all pairs at once, on the first rank of each pair; [] elsewhere.

    Call on the ranks of the pairs, after a barrier.
    """
    pair = next(pair for pair in pairs if comm.rank in pair)
    out, into = np.ones(m, np.uint8), np.zeros(m, np.uint8)
    if comm.rank == pair[1]:
        for _ in range(trips):
            comm.Recv(into, pair[0], MESSAGE)
            comm.Send(out, pair[0], MESSAGE)
        comm.recv(source=pair[0], tag=CONTROL)
        return []
    times = np.empty(trips)
    for k in range(trips):
        start = time.perf_counter()
        comm.Send(out, pair[1], MESSAGE)
        comm.Recv(into, pair[1], MESSAGE)
        times[k] = (time.perf_counter() - start) / 2
    comm.send(None, pair[1], CONTROL)
    return times.tolist()
