"""Measures of a simulated program (Calzeta and de Souza 2008, 3.3.5), and of a real run."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fembench.base.errors import InputError
from fembench.base.tables import table
from fembench.base.units import percent, plural, seconds, size
from fembench.model.engine import SimulationOutcome
from fembench.model.graph import ExecutionGraph
from fembench.model.path import by_phase, by_rank, critical_path
from fembench.model.plan import SimulationPlan
from fembench.records.phases import ASSEMBLY, CG
from fembench.records.record import Record
from fembench.records.times import times_of


def mean_error(measured: Sequence[float], predicted: Sequence[float]) -> float:
    """Error of the mean over processes, in percent; errors of
    single processes may cancel."""
    return 100 * (float(np.mean(predicted)) / float(np.mean(measured)) - 1)


def makespan_error(measured: Sequence[float], predicted: Sequence[float]) -> float:
    """Error of the time at which the last process ends, in percent."""
    return 100 * (max(predicted) / max(measured) - 1)


def process_error(measured: Sequence[float], predicted: Sequence[float]) -> float:
    """Mean over processes of |error|, in percent."""
    m = np.asarray(measured, float)
    p = np.asarray(predicted, float)
    return float(100 * np.mean(np.abs(p / m - 1)))


def result_tree(plan: SimulationPlan, result: SimulationOutcome) -> dict[str, object]:
    """A simulation in the format of --json, in seconds and bytes."""
    return {
        "makespan": result.makespan,
        "phases": list(plan.phases),
        **{name: getattr(result, name).tolist() for name in ("finish", "busy", "wait", "overhead")},
        "messages": result.messages.tolist(),
        "bytes": result.n_bytes.tolist(),
        "critical_path": by_phase(critical_path(plan, result)),
        "turns_simulated": result.simulated,
    }


def residual_text(graph: ExecutionGraph) -> str:
    """One line on the time per iteration that a graph of a run does not explain."""
    return (
        f"residual: {seconds(graph.residual)} per iteration of {graph.source}, which neither computing nor "
        "messages explain; not simulated"
    )


def rank_table(plan: SimulationPlan, result: SimulationOutcome) -> str:
    """Busy, wait, overhead, finish and messages of each rank."""
    rows = [
        [r, *map(seconds, (busy, wait, over, finish)), percent(busy / finish) if finish else None, n, size(b)]
        for r, (busy, wait, over, finish, n, b) in enumerate(
            zip(
                result.busy.sum(axis=1).tolist(),
                result.wait.sum(axis=1).tolist(),
                result.overhead.sum(axis=1).tolist(),
                result.finish.tolist(),
                result.messages.tolist(),
                result.n_bytes.tolist(),
            )
        )
    ]
    heads = ["rank", "busy", "wait", "overhead", "finish", "occupied", "messages", "sent"]
    return table(heads, rows, align="rrrrrrrr")


def phase_table(plan: SimulationPlan, result: SimulationOutcome) -> str:
    """One row per phase: mean over ranks, maximum and its rank,
    part of the critical path."""
    on_path = by_phase(critical_path(plan, result))
    rows = []
    for k, name in enumerate(plan.phases):
        spent = result.busy[:, k] + result.wait[:, k] + result.overhead[:, k]
        if spent.max() or on_path.get(name):
            path = on_path.get(name, 0.0)
            most = int(spent.argmax())
            rows.append(
                [name, seconds(float(spent.mean())), seconds(float(spent.max())), most, seconds(path)]
            )
            rows[-1].append(percent(path / result.makespan) if result.makespan else None)
    if "network" in on_path:
        path = on_path["network"]
        rows.append(["network", None, None, None, seconds(path), percent(path / result.makespan)])
    return table(["phase", "mean", "most", "on rank", "critical path", "part"], rows, align="lrrrrr")


def bottlenecks(plan: SimulationPlan, result: SimulationOutcome, hosts: Sequence[str] = ()) -> list[str]:
    """What limits the time, a line each: parts of the critical path, and imbalance."""
    if not result.makespan:
        return ["the graph takes no time"]
    path = critical_path(plan, result)
    found = [
        f"{name}: {percent(spent / result.makespan)} of the critical path"
        for name, spent in list(by_phase(path).items())[:3]
    ]
    ranks = by_rank(path)
    if ranks:
        rank, spent = next(iter(ranks.items()))
        where = f" on {hosts[rank]}" if hosts else ""
        part = percent(spent / result.makespan)
        found.append(f"rank {rank}{where} computes {part} of the critical path")
    busy = result.busy.sum(axis=1)
    if busy.mean():
        found.append(f"imbalance: the busiest rank computes {busy.max() / busy.mean():.2f} times the mean")
    return found


class RunErrors(NamedTuple):
    """Errors of simulated times relative to those of a run, in percent of the run's."""

    makespan: float
    mean: float  # over processes: errors of single processes may cancel
    process: float  # mean |error|


def run_errors(
    record: Record, graph: ExecutionGraph, result: SimulationOutcome
) -> tuple[RunErrors, RunErrors | None]:
    """(errors of the simulation, those after correction by its run's residual).

    The second is None for a graph without a residual. Against that same run it
    is near 0 by construction, so only the first one is an error of prediction.
    Ranks begin CG when the last of them has assembled. Raises InputError if
    the numbers of ranks differ.
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
