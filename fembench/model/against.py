"""A simulation compared with a real run."""

from collections.abc import Sequence
from typing import NamedTuple

from fembench.base.errors import InputError
from fembench.base.tables import table
from fembench.base.units import plural
from fembench.model.engine import SimulationOutcome
from fembench.model.graph import ExecutionGraph
from fembench.model.measures import makespan_error, mean_error, process_error
from fembench.records.phases import ASSEMBLY, CG
from fembench.records.record import Record
from fembench.records.times import times_of


class RunErrors(NamedTuple):
    """Errors of simulated times relative to those of a run, in percent of the run's."""

    makespan: float
    mean: float  # over processes: errors of single processes may cancel
    process: float  # mean |error|


def run_errors(
    record: Record, graph: ExecutionGraph, result: SimulationOutcome
) -> tuple[RunErrors, RunErrors | None]:
    """(errors of the simulation, those after correction by the residual of the run that the graph is of).

    The second is None for a graph without a residual. Against that same run it is near 0 by construction, so
    only the first one is an error of prediction. Ranks begin CG when the last of them has assembled. Raises
    InputError if the numbers of ranks differ.
    """
    if record.case.placement.ranks != graph.ranks or not graph.iterations:
        raise InputError(
            f"record {record.id}: {plural(record.case.placement.ranks, 'rank')}; "
            f"expected {graph.ranks}, as the graph"
        )
    phases = times_of(record).middle
    took = phases[:, ASSEMBLY].max() + graph.iterations * phases[:, CG]
    corrected = result.finish + graph.iterations * graph.residual
    plain, after = (_errors(took.tolist(), finish.tolist()) for finish in (result.finish, corrected))
    return plain, after if graph.residual else None


def _errors(measured: Sequence[float], simulated: Sequence[float]) -> RunErrors:
    each = (error(measured, simulated) for error in (makespan_error, mean_error, process_error))
    return RunErrors(*each)


def errors_text(record: Record, graph: ExecutionGraph, result: SimulationOutcome) -> str:
    """The errors as a table; without residuals first. Raises InputError like run_errors."""
    plain, after = run_errors(record, graph, result)
    own = "this run's" if graph.source == record.id else f"{graph.source}'s"
    columns = {"error": plain} | ({f"after correction by {own} own residuals": after} if after else {})
    rows = [
        [what, *(f"{errors[k]:{form}} %" for errors in columns.values())]
        for k, (what, form) in enumerate(
            [("makespan", "+.1f"), ("mean over ranks", "+.1f"), ("per rank, absolute", ".1f")]
        )
    ]
    return f"against {record.id}:\n{table(['', *columns], rows, align='lrr')}"
