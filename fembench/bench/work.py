"""What one CG iteration does: flops, bytes, messages; counted, not estimated."""

from fembench.bench.measure import Measured
from fembench.bench.prepare import Prepared
from fembench.dist.comm import Comm
from fembench.machine.bandwidth import roof, triads
from fembench.records.record import SolveFacts
from fembench.timing.phases import ALLREDUCE, SPMV_INTERIOR, UNPACK
from fembench.timing.tracer import TracerLike

BLOCK_BYTES = 40  # of the symmetric matrix, for each block of the whole stiffness


def rank_triads(comm: Comm, prepared: Prepared) -> tuple[float, ...]:
    """Bytes a second of this rank's repeated triads, all ranks at once. Collective.

    The arrays are as large as the mean rank's matrix: of one size on all, whatever their shares.
    """
    blocks = prepared.partition.blocks
    comm.Barrier()
    return triads(BLOCK_BYTES * sum(blocks) / len(blocks))


def solve_facts(
    comm: Comm,
    prepared: Prepared,
    measured: Measured,
    tracer: TracerLike,
    triads_before: tuple[float, ...] = (),
) -> SolveFacts:
    """Counts of the last set, and the memory bandwidth of all ranks at once. Collective.

    `triads_before`: this rank's, of before the sets.
    """
    operator, result, interface = measured.operator, measured.result, prepared.interface
    last = measured.sets[-1]
    counts = last.counts - result.outside  # of the iterations alone
    updates = _an_iteration(int(counts[UNPACK]), last.iterations)
    products = last.counts[SPMV_INTERIOR] / max(last.iterations, 1)  # with those that belong to no iteration
    products = products or 1.0  # PETSc's log does not always tell
    told = max(updates, 0)  # nor here
    comm.Barrier()
    here = (
        float(products * operator.flops + measured.work.flops),
        float(products * operator.bytes_per_product + measured.work.bytes),
        int(operator.matrix_bytes),
        roof(operator.matrix_bytes),
        triads_before + rank_triads(comm, prepared),
        len(interface.neighbours),
        sum(interface.message_bytes),
    )
    flops, n_bytes, matrix, bandwidth, triads_of, neighbours, message_bytes = zip(*comm.allgather(here))
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
    )


def _an_iteration(count: int, iterations: int) -> int:
    """How often an iteration does what all of them did `count` times; -1 if not a whole number of times."""
    if iterations == 0:
        return 0
    return count // iterations if count % iterations == 0 else -1
