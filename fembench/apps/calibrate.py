"""Samples of what programs are made of: seconds of an operation on every rank, seconds of messages to rank 0.

Ranks that compute together in a run do so here; one pair after the other exchanges messages while the rest
sleeps.
"""

import time
from collections.abc import Callable

import numpy as np

from fembench.apps import graphs
from fembench.apps.kernels import KERNELS, SELECTED, element_chain, power_and_choose, prime_block, sieve
from fembench.apps.work import Worker

PING, PONG = 3, 4
SIZES = (8, 4096, 65536, 524288)  # bytes
TRIPS = 7
IN_A_ROW = 5  # a run has many tasks too: their mean is what it takes
Bench = tuple[str, Callable[[], object], float]  # operation, what to compute, how many of it that is


def benches(program: str, tasks: int, size: int) -> list[Bench]:
    """The operations of one program, at the size at which it runs them."""
    if program not in KERNELS:
        return [("unit", lambda: graphs.burn(max(size, 1)), float(max(size, 1)))]
    kernel = KERNELS[program]
    tasks = max(tasks, 1)
    data = kernel.make(0, tasks, size, 0)
    certain = kernel.counts(tasks, size)
    ((name, times),) = certain.items()
    if program == "primes":
        low, high = (int(v) for v in kernel.make(tasks // 2, tasks, size, 0))
        primes = sieve(low, high, size)
        block: Bench = ("prime_block", lambda: prime_block(primes), float(max(len(primes), 1)))
        return [(name, lambda: sieve(low, high, size), times), block]
    if program == "partial":
        a = data.reshape(size, size)
        picked = np.linspace(0, 1, int(SELECTED * size * size))
        chain: Bench = ("element", lambda: element_chain(picked), float(len(picked)))
        return [(name, lambda: power_and_choose(a), times), chain]
    return [(name, lambda: kernel.run(data, size), times)]


def samples(worker: Worker, program: str, tasks: int, size: int, count: int) -> dict[str, list[float]]:
    """Operation -> seconds of one, `count` samples of several in a row, on this rank. Collective.

    A farm's coordinator does not compute with its workers, so it is sampled alone.
    """
    found: dict[str, list[float]] = {}
    apart = program in KERNELS and worker.comm.size > 1
    for name, function, times in benches(program, tasks, size):
        worker.compute(function)
        for turn in (0, 1) if apart else (None,):
            worker.meet()
            if turn is None or turn == min(worker.comm.rank, 1):
                found[name] = [_sample(worker, function) / times for _ in range(count)]
    worker.meet()
    return found


def _sample(worker: Worker, function: Callable[[], object]) -> float:
    """Mean seconds of several calls."""
    begin = time.perf_counter()
    for _ in range(IN_A_ROW):
        worker.compute(function)
    return (time.perf_counter() - begin) / IN_A_ROW


def messages(worker: Worker) -> dict[int, list[float]]:
    """Bytes -> seconds of a message between this rank and rank 0, half of a round trip. Collective.

    Both wait in MPI for it: how rarely a run's ranks look for messages is no matter of the message.
    """
    comm = worker.comm
    found: dict[int, list[float]] = {n: [] for n in SIZES}
    for rank in range(1, comm.size):
        worker.meet()
        if comm.rank not in (0, rank):
            continue
        for n_bytes in SIZES:
            data = np.zeros(n_bytes // 8)
            for _ in range(TRIPS):
                begin = time.perf_counter()
                if comm.rank == 0:
                    comm.Send(data, rank, PING)
                    comm.Recv(data, rank, PONG)
                else:
                    comm.Recv(data, 0, PING)
                    comm.Send(data, 0, PONG)
                found[n_bytes].append((time.perf_counter() - begin) / 2)
    return found if comm.rank else {n: [] for n in SIZES}
