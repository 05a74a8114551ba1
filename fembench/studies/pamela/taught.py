"""What runs teach the closed form, and how many iterations to expect.

The profile's speeds are corrected as the simulation's are (`Study.correction`); what is left, measured over
predicted iteration, is the closed form's own, and how much it differs from run to run is how wide its
interval must be.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from fembench.model.configuration import by_configuration
from fembench.model.correct import fit, folds, measured, taught_by
from fembench.model.forecast import half_width
from fembench.model.predictor import Predictor
from fembench.model.workload import Workload, of_record, problem_of
from fembench.records.case import Case
from fembench.records.ids import now_utc
from fembench.records.prediction import ANALYTIC, Predicted, Prediction, sealed
from fembench.records.record import Record
from fembench.studies.pamela.fem import FemPrediction, fitted_iterations
from fembench.studies.pamela.of_study import Lessons, partitioned, predict_work

TURNS = 100  # of the loop, where only an iteration is asked about
MOST = 10  # times as many iterations as equations are allowed where the case does not say


def learn(study: Predictor, records: Sequence[Record]) -> Lessons:
    """The lessons of these runs, whose machine the study describes. Raises InputError."""
    if not records:
        return Lessons()
    errors = [_error(study, record) for record in records]
    middle = float(np.median(errors))
    lessons = taught_by(records, study.rates, study.place) if study.correction else []
    for kept, left in folds(records) if lessons else []:
        others = dataclasses.replace(study, correction=fit([lessons[k] for k in kept]))
        for k in left:
            errors[k] = _error(others, records[k])
    grouped = list(by_configuration(records, [e - middle for e in errors]).values())
    wide = half_width(grouped) if len(errors) > 1 else 0.0
    return Lessons(math.exp(middle), wide)


def _error(study: Predictor, record: Record) -> float:
    found = predict_work(study, of_record(record), TURNS).iteration.middle
    return math.log(measured(record).iteration / found)


def expected_iterations(given: int, work: Workload, records: Sequence[Record]) -> tuple[int, str]:
    """(iterations, where they come from): given; what runs of the mesh took; a law fitted on runs of two
    coarser meshes or more; else the most that are allowed, an upper bound."""
    if given:
        return given, "as given"
    case = work.case
    known = [
        r
        for r in records
        if r.solve.converged
        and not r.case.iterations
        and (r.case.problem, r.case.precond, r.case.tolerance) == (case.problem, case.precond, case.tolerance)
    ]
    same = [r.solve.iterations for r in known if r.mesh.hash == work.mesh_hash]
    if same:
        return round(float(np.median(same))), "as runs of the mesh took"
    coarser = {r.mesh.n_equations: r.solve.iterations for r in known if r.mesh.n_equations < work.n_equations}
    if len(coarser) > 1:
        return fitted_iterations(
            sorted(coarser.items()), work.n_equations
        ), f"fitted on {len(coarser)} coarser meshes"
    return case.max_iterations or MOST * work.n_equations, "the most that are allowed: an upper bound"


def as_prediction(
    study: Predictor, work: Workload, found: FemPrediction, learned: Sequence[Record]
) -> Prediction:
    """The record of a closed form, to be written before the run."""
    link, names = study.link, [h.name for h in study.profile.environment.hosts]
    return sealed(
        Predicted(
            created=now_utc(),
            case=work.case,
            profile=study.digest,
            mesh=work.mesh_hash,
            hosts=tuple(names[s.model] for s in study.slots(work.ranks)),
            iteration=found.iteration.middle,
            low=found.iteration.low,
            high=found.iteration.high,
            assembly=found.assembly.middle,
            phases={},
            limit=found.bottleneck,
            learned=tuple(r.id for r in learned),
            network=f"given: {link.latency:g} s, {link.bandwidth:g} bytes/s" if link else "measured",
            synthetic=study.profile.environment.synthetic,
            method=ANALYTIC,
            problem=problem_of(work.case),
        )
    )


def in_closed_form(study: Predictor, lessons: Lessons, learned: Sequence[Record], case: Case) -> Prediction:
    """What the closed form says of a run, to be written before it. Raises InputError."""
    work = partitioned(study, case)
    return as_prediction(study, work, predict_work(study, work, TURNS, "phase", lessons), learned)
