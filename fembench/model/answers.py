"""The answers of `fembench predict` about several runs: predictions, times of solutions, text."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from fembench.mesh.mesh import Mesh
from fembench.model.closed_form import Compose
from fembench.model.closed_form_learn import learn_closed_form
from fembench.model.closed_form_prices import bounded
from fembench.model.closed_form_text import BoundedRun, bounds_text, bounds_tree
from fembench.model.forecast import smallest
from fembench.model.forecast_text import forecast_text
from fembench.model.iteration_count import expected_iterations
from fembench.model.predictor import Predictor, bound_of, prediction_of
from fembench.model.workload import Workload
from fembench.records.case import Case
from fembench.records.prediction import Prediction
from fembench.records.record import Record


class Answers(NamedTuple):
    """Predictions of several runs; lists have one entry per run."""

    works: list[Workload]
    predictions: list[Prediction]
    latest: list[float]  # upper end of a solution's seconds; []: number of iterations unknown
    text: str
    tree: list[object]  # for --json


def simulated_answers(study: Predictor, cases: Sequence[Case], mesh: Mesh, iterations: int = 0) -> Answers:
    """Predictions by simulation; `iterations` of a solution, 0 if unknown. Raises InputError."""
    found = [study.predict(case, mesh) for case in cases]
    said = [prediction_of(study, each) for each in found]
    return Answers(
        works=[each.work for each in found],
        predictions=said,
        latest=[each.total(iterations)[2] for each in found] if iterations else [],
        text=forecast_text(found, iterations, study.profile.environment.synthetic, len(study.learned)),
        tree=[msgspec.to_builtins(each) for each in said],
    )


def bounded_answers(
    study: Predictor,
    cases: Sequence[Case],
    mesh: Mesh,
    iterations: int = 0,
    compose: Compose = "phase",
    learned: Sequence[Record] = (),
) -> Answers:
    """Predictions in closed form; `iterations` of a solution, 0: estimated. Raises InputError."""
    correction = learn_closed_form(dataclasses.replace(study, edits=(), factor=1.0), learned)
    found = []
    for case in cases:
        work = study.workload(case, mesh)
        count, source = expected_iterations(iterations, work, learned)
        found.append(BoundedRun(work, bounded(study, work, count, compose, correction), source))
    return Answers(
        works=[each.work for each in found],
        predictions=[bound_of(study, each.work, each.form, learned) for each in found],
        latest=[each.form.seconds.high for each in found],
        text=bounds_text(found, compose, study.profile.environment.synthetic),
        tree=[bounds_tree(each, compose) for each in found],
    )


def intervals(answers: Answers) -> list[tuple[int, float, float, float]]:
    """(ranks, low, expected, high) of each run, seconds per iteration."""
    said = [each.predicted for each in answers.predictions]
    return [(p.case.placement.ranks, p.low, p.iteration, p.high) for p in said]


def fewest_ranks(answers: Answers, deadline: float) -> int:
    """The fewest ranks whose time is within the deadline up to the upper end of its interval. Raises
    InputError if no number does."""
    return smallest([work.ranks for work in answers.works], answers.latest, deadline)
