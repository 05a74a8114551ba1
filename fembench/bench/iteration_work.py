"""The work of one CG iteration: flops, bytes and messages, counted rather than estimated."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fembench.base.arrays import F64
from fembench.bench.measure import Measurement
from fembench.bench.prepare import Prepared
from fembench.host.machine_state import BRIEF, LARGEST, TRIADS, HostState, readings, roof, state_here, triads
from fembench.host.provenance import host_names
from fembench.kernels.backend import kernels
from fembench.methods.lookup import storage_of
from fembench.ranks.comm import Comm
from fembench.records.phases import ALLREDUCE, COMPUTING, OWN_MESSAGES, SPMV_INTERIOR, UNPACK, WAITING
from fembench.records.record import LevelTimes, SolveFacts, StateReading, triad_bytes
from fembench.records.schema import rows
from fembench.solve.operators import RankDevice
from fembench.timing.tracer import TracerLike


class Roofs(NamedTuple):
    """Memory bandwidth of one rank while all ranks run, bytes/s."""

    n_bytes: float  # that `roof` went through
    roof: float
    triads: tuple[float, ...]  # repeated, with arrays of one size on all ranks
    state: HostState | None = None  # of its host


def roofs_before(comm: Comm, prepared: Prepared, storage: str) -> Roofs:
    """Bandwidth and state of the host before the sets. Collective."""
    n_bytes = storage_of(storage).block_bytes * prepared.partition.blocks[comm.rank]
    comm.Barrier()
    return Roofs(n_bytes, _roof(prepared.device, n_bytes), rank_triads(comm, prepared), state_here(comm))


def _roof(device: RankDevice | None, n_bytes: int) -> float:
    """Bytes per second of the memory that holds this rank's matrix."""
    return roof(n_bytes) if device is None else device.roof(n_bytes)


def better_roof(matrix_bytes: int, before: Roofs, device: RankDevice | None = None) -> float:
    """The roof of a matrix, bytes/s: the better of before and after the sets.

    So a disturbance after them does not make a correct product look impossible. A
    smaller matrix may fit into a faster cache than the array read before; then the
    value before is not used.
    """
    after = _roof(device, matrix_bytes)
    return max(after, before.roof) if min(before.n_bytes, LARGEST) >= min(matrix_bytes, LARGEST) else after


def rank_triads(comm: Comm, prepared: Prepared) -> tuple[float, ...]:
    """Bytes per second of this rank's repeated triads while all ranks run them. Collective.

    The arrays are as large as the mean rank's matrix, the same on all ranks.
    """
    comm.Barrier()
    n_bytes = triad_bytes(prepared.partition.blocks)
    if prepared.device is not None:
        return tuple(prepared.device.triad(n_bytes, BRIEF) for _ in range(TRIADS))
    return triads(n_bytes)


def solve_facts(
    comm: Comm,
    prepared: Prepared,
    measured: Measurement,
    tracer: TracerLike,
    before: Roofs,
) -> SolveFacts:
    """Counts of the last set, and the memory bandwidth while all ranks run. Collective.

    `before`: this rank's bandwidths, and the state of its host, before the sets.
    """
    operator = measured.operator
    result = measured.result
    interface = prepared.interface
    last = measured.sets[-1]
    counts = last.counts - result.outside  # of the iterations alone
    updates = _an_iteration(int(counts[UNPACK]), last.iterations)
    products = last.counts[SPMV_INTERIOR] / max(last.iterations, 1)  # also those outside of iterations
    products = products or 1.0  # PETSc's log does not always report it
    told = max(updates, 0)  # as above
    comm.Barrier()
    here = (
        float(products * operator.flops + measured.work.flops),
        float(products * operator.bytes_per_product + measured.work.bytes),
        int(operator.matrix_bytes),
        better_roof(operator.matrix_bytes, before, prepared.device),
        before.triads + rank_triads(comm, prepared),
        len(interface.neighbours),
        sum(interface.message_bytes),
        _seconds_of_levels(measured, tracer.ticks_per_second),
    )
    flops, n_bytes, matrix, bandwidth, triads_of, neighbours, message_bytes, levels = zip(
        *comm.allgather(here)
    )
    return SolveFacts(
        iterations=result.iterations,
        converged=result.converged,
        target=result.target,
        residuals=result.residuals,
        allreduces=_an_iteration(int(counts[ALLREDUCE]), last.iterations),
        updates=updates,
        messages=told * sum(neighbours),
        message_bytes=told * sum(message_bytes),
        flops=flops,
        bytes=n_bytes,
        matrix_bytes=matrix,
        bandwidth=bandwidth,
        triads=triads_of,
        state=_state(comm, before.state),
        levels=_levels(tracer.level_nodes, levels),
    )


def seconds_of_threads(comm: Comm) -> tuple[tuple[float, ...], ...]:
    """[rank][thread] computed since `use_threads`; () for one thread per rank. Collective."""
    found = comm.allgather(kernels.thread_seconds())
    return tuple(tuple(own.tolist()) for own in found) if len(found[0]) > 1 else ()


def _seconds_of_levels(measured: Measurement, rate: float) -> F64:
    """(n_levels, 3) s per iteration: computing, own messages, waiting (medians)."""
    timed = [one for one in measured.sets if not one.warmup and one.iterations] or measured.sets[-1:]
    each = np.median([one.levels / max(one.iterations, 1) for one in timed], axis=0) / rate
    return np.stack([each[:, kind].sum(axis=1) for kind in (COMPUTING, OWN_MESSAGES, WAITING)], axis=1)


def _levels(nodes: tuple[int, ...], by_rank: Sequence[F64]) -> tuple[LevelTimes, ...]:
    each = np.stack(by_rank)  # (n_ranks, n_levels, 3)
    return tuple(LevelTimes(n, *(rows(each[:, k, c]) for c in range(3))) for k, n in enumerate(nodes))


def _state(comm: Comm, before: HostState | None) -> tuple[StateReading, ...]:
    """The state of every host, mean of before and after the sets. Collective."""
    after = state_here(comm)
    mean = HostState(*(sum(pair) / 2 for pair in zip(before or after, after)))
    return readings(host_names(comm), comm.allgather((mean,)))


def _an_iteration(count: int, iterations: int) -> int:
    """How many times per iteration, of `count` in all; -1 if not a whole number."""
    if iterations == 0:
        return 0
    return count // iterations if count % iterations == 0 else -1
