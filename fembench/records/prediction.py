"""Prediction of a run, made before it, and its error, added afterwards.

Outcomes are added to the file later, but the prediction itself never changes: its hash,
the seal, would reveal it. Times are in seconds.
"""

import datetime
import hashlib
from pathlib import Path
from typing import Any

import msgspec

from fembench.base.config import read_json, write_json
from fembench.base.errors import InputError
from fembench.base.files import locked
from fembench.records.case import Case
from fembench.records.record import Frozen, StateReading
from fembench.records.schema import read

PREDICTION_SCHEMA = 3
METHODS = SIMULATION, ANALYTIC = "simulation", "analytic"
MEASURED_NETWORK = "measured network"


class Predicted(Frozen, frozen=True):
    """Everything predicted before the run."""

    created: str  # ISO 8601, UTC
    case: Case
    profile: str  # SHA-256 of the machine profile's file
    mesh: str  # hash
    hosts: tuple[str, ...]  # [rank]
    iteration: float  # CG time per iteration, slowest rank
    low: float  # seconds per iteration: nine runs of ten take `low` to `high`
    high: float
    assembly: float  # per set, slowest rank
    phases: dict[str, float]  # of an iteration, mean over ranks
    limit: str  # what limits the time
    learned: tuple[str, ...] = ()  # ids of the records from which it was corrected
    network: str = ""  # measured, or the given link
    synthetic: str = ""
    method: str = SIMULATION
    problem: dict[str, object] = msgspec.field(default_factory=dict)  # as resolved; empty: not recorded
    state: tuple[StateReading, ...] = ()  # of the hosts, in the profile and in the learned runs, by time
    provisional: str = ""  # why it may be wrong: other work disturbed the profile, or learned runs


class Observed(Frozen, frozen=True):
    """The outcome of a run."""

    record: str  # id
    added: str  # ISO 8601, UTC
    iteration: float
    error: float  # predicted / measured - 1
    inside: bool  # the measured time lies in the interval
    phases: dict[str, float]  # predicted minus measured, relative to the measured iteration
    began: str = ""  # when the run began: ISO 8601, UTC; "": not recorded
    stale: str = ""  # why the run does not test the prediction: the machine is in another state


class Prediction(Frozen, frozen=True):
    """What was predicted, sealed, and the runs that tested it."""

    schema: int
    seal: str  # SHA-256 of `predicted`
    predicted: Predicted
    observed: tuple[Observed, ...] = ()


def sealed(predicted: Predicted) -> Prediction:
    """A new prediction, without outcome."""
    return Prediction(
        schema=PREDICTION_SCHEMA, seal=_seal(msgspec.to_builtins(predicted)), predicted=predicted
    )


def save_prediction(prediction: Prediction, path: Path | str) -> None:
    """Write a new prediction. Raises InputError if the file exists: none is overwritten."""
    if Path(path).exists():
        raise InputError(f"{path} exists; predictions are never overwritten: expected a new file")
    write_json(path, prediction, new=True)


def load_prediction(path: Path | str) -> Prediction:
    """The prediction in a file. Raises InputError for another, or a broken seal."""
    tree = read_json(path, dict, "a prediction of fembench predict")
    found = read(
        path, Prediction, PREDICTION_SCHEMA, "a prediction", has="predicted", verb="predict", tree=tree
    )
    if found.seal != _seal(tree["predicted"]):
        raise InputError(
            f"{path}: the prediction has been changed since it was made; expected the original file"
        )
    return msgspec.structs.replace(sealed(found.predicted), observed=found.observed)


def is_later(began: str, created: str) -> bool:
    """Whether a run began after a prediction was made, give or take one second."""
    slack = datetime.timedelta(seconds=1)
    first, second = (datetime.datetime.fromisoformat(text) for text in (began, created))
    return first + slack > second


def add_outcome(path: Path | str, observed: Observed) -> Prediction:
    """Add the outcome of a run to the prediction in a file, each record once.

    Raises InputError if the run began before the prediction was made.
    """
    with locked(Path(path).parent):  # keeps both of two simultaneous additions
        return _add_outcome(path, load_prediction(path), observed)


def _add_outcome(path: Path | str, prediction: Prediction, observed: Observed) -> Prediction:
    if any(o.record == observed.record for o in prediction.observed):
        return prediction
    created = prediction.predicted.created
    if not observed.began or not is_later(observed.began, created):
        raise InputError(
            f"{path}: predicted {created}, but the run of record {observed.record} began "
            f"{observed.began or '(not recorded)'}; expected a run made after the prediction"
        )
    prediction = msgspec.structs.replace(prediction, observed=(*prediction.observed, observed))
    write_json(path, prediction)
    return prediction


def _seal(predicted: dict[str, Any]) -> str:
    """The hash of a prediction, without fields at defaults, so that older seals hold."""
    usual = {"method": (SIMULATION,), "problem": ({},), "state": ((), [])}  # a tuple is a list in a file
    tree = {k: v for k, v in predicted.items() if k not in usual or v not in usual[k]}
    return hashlib.sha256(msgspec.json.encode(tree)).hexdigest()
