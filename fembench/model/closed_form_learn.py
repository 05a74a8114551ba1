"""The correction of the closed form by runs on the machine.

The profile's speeds are corrected as for the simulation (`Predictor.correction`). The remaining ratio of
measured to predicted iteration times is the error of the closed form itself: its median scales an iteration,
and its spread between runs determines the width of the interval.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from fembench.model.closed_form_prices import ClosedFormCorrection, bounded
from fembench.model.configuration import by_configuration
from fembench.model.correct import fit, folds, measured, taught_by
from fembench.model.forecast import half_width
from fembench.model.predictor import Predictor, bound_of
from fembench.model.workload import of_record
from fembench.records.case import Case
from fembench.records.prediction import Prediction
from fembench.records.record import Record

TURNS = 100  # iterations, if only the time per iteration matters


def learn_closed_form(study: Predictor, records: Sequence[Record]) -> ClosedFormCorrection:
    """The correction from runs on the machine of `study`. Errors are cross-validated, one configuration and
    one pass left out at a time. Raises InputError for runs that cannot be predicted."""
    if not records:
        return ClosedFormCorrection()
    errors = [_error(study, record) for record in records]
    middle = float(np.median(errors))
    lessons = taught_by(records, study.rates, study.place) if study.correction else []
    for kept, left in folds(records) if lessons else []:
        others = dataclasses.replace(study, correction=fit([lessons[k] for k in kept]))
        for k in left:
            errors[k] = _error(others, records[k])
    grouped = list(by_configuration(records, [e - middle for e in errors]).values())
    return ClosedFormCorrection(math.exp(middle), half_width(grouped) if len(errors) > 1 else 0.0)


def _error(study: Predictor, record: Record) -> float:
    found = bounded(study, of_record(record), TURNS).expected.iteration
    return math.log(measured(record).iteration / found)


def in_closed_form(
    study: Predictor, correction: ClosedFormCorrection, learned: Sequence[Record], case: Case
) -> Prediction:
    """The closed-form prediction of a run, to be saved before the run. Raises InputError."""
    work = study.workload(case)
    return bound_of(study, work, bounded(study, work, TURNS, correction=correction), learned)
