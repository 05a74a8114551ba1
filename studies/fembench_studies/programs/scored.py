"""Predicted runs of small programs, as rows of the tables of `fembench validate`."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fembench.model.score import PredictionScore, ScoredConfiguration, score
from fembench.records.prediction import SIMULATION
from fembench_studies.programs.record import AppPrediction, AppRecord, load_apps
from fembench_studies.programs.user_task import is_code

__all__ = ["app_cells", "app_scores", "load_apps"]  # what `fembench validate` asks for
GROUPS = {  # programs with similar predictions
    "pi": "farms",
    "matrices": "farms",
    "primes": "farms, conditionals",
    "partial": "farms, conditionals",
    "integral": "master and slaves",
    "product": "master and slaves",
}
GRAPHS, OWN = "task graphs", "own tasks"


def app_cells(records: Sequence[AppRecord]) -> list[ScoredConfiguration]:
    """One configuration per record and method of prediction; records with a wrong result, and
    those that test no prediction, are left out."""
    right = [r for r in records if r.seconds and r.error <= 1 and not r.invalid]
    said = [(r, p) for r in right for p in (r.predicted, r.simulated) if p is not None]
    return [_cell(r, p) for r, p in said]


def _cell(record: AppRecord, p: AppPrediction) -> ScoredConfiguration:
    case, times = record.case, np.asarray(record.seconds)
    variation = float(np.std(times, ddof=1) / np.mean(times)) if len(times) > 1 else 0.0
    return ScoredConfiguration(
        mesh=f"{Path(case.program).name.replace(' ', '_')} {case.size}",
        ranks=case.ranks,
        shares=f"{case.tasks} tasks",
        predicted=middle(p),
        low=p.low,
        high=p.high,
        measured=float(np.median(times)),
        variation=variation,
        method=p.method,
        runs=tuple(record.seconds),
    )


def middle(p: AppPrediction) -> float:
    """The point prediction: that of the simulation, else the midpoint of the interval."""
    return p.terms["makespan"][0] if p.method == SIMULATION else (p.low + p.high) / 2


def app_scores(cells: Sequence[ScoredConfiguration]) -> dict[str, PredictionScore]:
    """Group and method, such as 'farms, analytic' -> score."""
    groups: dict[str, list[ScoredConfiguration]] = {}
    for cell in cells:
        program = cell.mesh.split()[0]
        name = GROUPS.get(program, OWN if is_code(program) else GRAPHS)
        groups.setdefault(f"{name}, {cell.method}", []).append(cell)
    return {name: score(found) for name, found in sorted(groups.items())}
