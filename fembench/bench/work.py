"""What one CG iteration does: flops, bytes, messages; counted, not estimated."""

from fembench.bench.measure import Measured
from fembench.bench.prepare import Prepared
from fembench.dist.comm import Comm
from fembench.machine.bandwidth import roof
from fembench.records.record import SolveFacts
from fembench.timing.phases import ALLREDUCE, SEND
from fembench.timing.tracer import TracerLike

DOUBLE = 8


def solve_facts(comm: Comm, prepared: Prepared, measured: Measured, tracer: TracerLike) -> SolveFacts:
    """Counts of the last set, and the memory bandwidth of all ranks at once. Collective."""
    operator, result, interface = measured.operator, measured.result, prepared.interface
    last = measured.sets[-1]
    updates = _an_iteration(int(last.counts[SEND]) - 1, last.iterations)
    comm.Barrier()
    here = (
        float(operator.flops + vector_flops(interface.n_dofs)),
        float(operator.bytes_per_product + vector_bytes(interface.n_dofs)),
        int(operator.matrix_bytes),
        roof(operator.matrix_bytes),
        len(interface.neighbours),
        sum(interface.message_bytes),
    )
    flops, n_bytes, matrix, bandwidth, neighbours, message_bytes = zip(*comm.allgather(here))
    return SolveFacts(
        iterations=result.iterations,
        converged=result.converged,
        target=result.target,
        residuals=result.residuals,
        allreduces=_an_iteration(int(last.counts[ALLREDUCE]) - 1, last.iterations),
        updates=updates,
        messages=updates * sum(neighbours),
        message_bytes=updates * sum(message_bytes),
        flops=flops,
        bytes=n_bytes,
        matrix_bytes=matrix,
        bandwidth=bandwidth,
    )


def _an_iteration(count: int, iterations: int) -> int:
    """How often an iteration does what all of them did `count` times; -1 if not a whole number of times."""
    if iterations == 0:
        return 0
    return count // iterations if count % iterations == 0 else -1


def vector_flops(n: int) -> int:
    """Of the fused updates of one iteration: x, r, <r, r> (6 n), d (2 n), <d, q> (2 n)."""
    return 10 * n


def vector_bytes(n: int) -> int:
    """Step reads x r d q and writes x r, direction reads d z and writes d; <d, q> is in the product."""
    return DOUBLE * n * (6 + 3)
