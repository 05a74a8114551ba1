"""Messages between rank 0 and each other rank, one pair at a time."""

import time
from collections.abc import Callable, Sequence

import numpy as np

from fembench.ranks.comm import Comm

MESSAGE = 1  # tag
BySize = dict[int, list[float]]  # bytes -> seconds


def half_round_trips(
    comm: Comm, meet: Callable[[], None], sizes: Sequence[int], *, samples: int, in_a_row: int
) -> BySize:
    """Bytes -> seconds of a message between this rank and rank 0, half
    of a round trip. Collective.

    One pair at a time, while the others sleep in `meet`; both ranks wait inside
    MPI. Each sample is the mean of `in_a_row` messages; the first sample is
    dropped. Rank 0 gets no samples.
    """
    found: BySize = {n_bytes: [] for n_bytes in sizes}
    for rank in range(1, comm.size):
        meet()
        if comm.rank not in (0, rank):
            continue
        for n_bytes in sizes:
            data = np.zeros(n_bytes // 8)
            for trip in range(1 + samples):
                begin = time.perf_counter()
                for _ in range(in_a_row):
                    if comm.rank == 0:
                        comm.Send(data, rank, MESSAGE)
                        comm.Recv(data, rank, MESSAGE)
                    else:
                        comm.Recv(data, 0, MESSAGE)
                        comm.Send(data, 0, MESSAGE)
                if trip and comm.rank:
                    found[n_bytes].append((time.perf_counter() - begin) / (2 * in_a_row))
    return found
