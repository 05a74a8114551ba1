"""Task graphs on ranks: ring, fork, join, diamond, fork-join (thesis-001, F12).

A task waits for those that feed it, burns its work, and sends to those that it feeds. What it sends is one
more than the sum of what it received, so the result shows that every message was taken into account.
"""

from collections.abc import Sequence

import numpy as np

from fembench.apps.work import Array, Worker

ROUNDS, LENGTH = 100, 8_000  # of one unit of work


def burn(units: int) -> float:
    """So many units of work; the same every time."""
    x = np.linspace(0.0, 1.0, LENGTH)
    for _ in range(units * ROUNDS):
        x *= 0.999
        x += 1e-6
    return float(x[0])


def run(
    worker: Worker,
    order: Sequence[int],
    host: Sequence[int],
    edges: Sequence[tuple[int, int]],
    units: int,
    n_bytes: int,
    idle: Sequence[int] = (),
) -> float:
    """What the last task of the graph has, on the rank that had it; 0 elsewhere. Collective.

    Receives are posted beforehand and sends do not block, so no order of tasks can lock the ranks.
    """
    comm, n = worker.comm, len(order)
    remote = [(a, b) for a, b in edges if host[a] != host[b]]
    inbox = {e: _message(0.0, n_bytes) for e in remote if host[e[1]] == comm.rank}
    coming = {e: comm.Irecv(data, host[e[0]], tag(*e, n)) for e, data in inbox.items()}
    values: dict[int, float] = {}
    sent = []
    for task in order:
        if host[task] != comm.rank:
            continue
        value = 1.0 + sum(values[a] for a, b in edges if b == task and host[a] == comm.rank)
        for edge in [e for e in inbox if e[1] == task]:
            worker.finished(coming[edge])
            value += float(inbox[edge][0])
        if task not in idle:
            worker.compute(burn, units)
        values[task] = value
        for edge in [e for e in remote if e[0] == task]:
            sent.append(comm.Isend(_message(value, n_bytes), host[edge[1]], tag(*edge, n)))
    for request in sent:
        worker.finished(request)
    return values.get(n - 1, 0.0)


def tag(source: int, target: int, n_tasks: int) -> int:
    """One for each edge."""
    return source * n_tasks + target


def _message(value: float, n_bytes: int) -> Array:
    data = np.zeros(max(n_bytes // 8, 1))
    data[0] = value
    return data


def expected(n_tasks: int, edges: Sequence[tuple[int, int]]) -> float:
    """What the last task must have, computed here."""
    values: list[float] = []
    for task in range(n_tasks):
        values.append(1.0 + sum(values[a] for a, b in edges if b == task))
    return values[-1]
