"""A simulation compared with the same job on one rank, and with a real run."""

from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.model.engine import SimulationOutcome, simulate
from fembench.model.graph import ExecutionGraph
from fembench.model.machine import Machine, even_machine
from fembench.model.measures import (
    ParallelMeasures,
    makespan_error,
    mean_error,
    operations,
    parallel,
    process_error,
)
from fembench.model.planner import make_plan
from fembench.records.phases import ASSEMBLY, CG
from fembench.records.record import Record
from fembench.records.times import Times


def against_one_rank(base: ExecutionGraph, machine: Machine, result: SimulationOutcome) -> ParallelMeasures:
    """Measures of a simulation relative to the same job on one rank of speed 1. Raises InputError."""
    if base.ranks != 1:
        raise InputError(f"{base.source}: a graph of {base.ranks} ranks; expected one rank")
    alone = simulate(make_plan(base, even_machine(1, latency=0.0, per_byte=0.0, overhead=0.0)))
    work = operations(alone, (1.0,)), operations(result, machine.speeds)
    return parallel(alone.makespan, work[0], result.makespan, work[1], machine.ranks)


def run_errors(
    record: Record, graph: ExecutionGraph, result: SimulationOutcome
) -> tuple[float, float, float]:
    """(makespan_error, mean_error, process_error) of a simulation relative to a real run, in percent.

    Ranks begin CG when the last of them has assembled. Raises InputError if the numbers of ranks differ.
    """
    if record.case.placement.ranks != graph.ranks or not graph.iterations:
        raise InputError(
            f"record {record.id}: {plural(record.case.placement.ranks, 'rank')}; "
            f"expected {graph.ranks}, as the graph"
        )
    phases = Times(record).middle
    took = phases[:, ASSEMBLY].max() + graph.iterations * phases[:, CG]
    pair = took.tolist(), result.finish.tolist()
    return makespan_error(*pair), mean_error(*pair), process_error(*pair)
