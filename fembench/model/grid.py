"""A grid of predictions to score: training, held-out runs, predictions made before.

    machine = "machine.json"             profile of the machine
    training = "results/train"           campaign of the training runs; or several: ["train-1", "train-2"]
    held_out = "results/held"            held-out campaign: other ranks, meshes and shares
    predictions = "predictions"          folder of the predictions, written before the held-out runs
    learn = false                        test the profile alone; only the baseline uses the training runs

Paths are relative to the file. A held-out run counts only if it
began after its prediction.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from fembench.base.config import read_toml
from fembench.base.errors import InputError
from fembench.mesh.presets import resolve
from fembench.methods.lookup import product_name, storage_of
from fembench.model.closed_form_prices import in_closed_form, learn_closed_form
from fembench.model.configuration import by_case, content, difference, key
from fembench.model.correct import measured
from fembench.model.drifted import StateChange, changes, readings_of
from fembench.model.predictor import Predictor, open_study, prediction_of, taught
from fembench.model.score import (
    BASELINE,
    Grid,
    PredictionScore,
    ScoredConfiguration,
    baseline_cells,
    check_held_out,
    score,
)
from fembench.model.workload import of_record, problem_of
from fembench.records.case import Case
from fembench.records.prediction import (
    ANALYTIC,
    SIMULATION,
    Predicted,
    Prediction,
    is_later,
    load_prediction,
    save_prediction,
)
from fembench.records.record import Record
from fembench.records.times import began


class GridFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a GRID.toml."""

    machine: str
    training: str | tuple[str, ...]
    held_out: str
    predictions: str
    learn: bool = True  # False: only the baseline uses the training runs


def read_grid(path: Path) -> GridFile:
    """The file with its paths resolved. Raises InputError."""
    grid = read_toml(path, GridFile)
    place = path.parent
    given = {name: getattr(grid, name) for name in ("machine", "held_out", "predictions")}
    training = (grid.training,) if isinstance(grid.training, str) else grid.training
    return msgspec.structs.replace(
        grid,
        training=tuple(str(place / folder) for folder in training),
        **{name: str(place / value) for name, value in given.items()},
    )


def study_of(grid: GridFile, training: Sequence[Record]) -> Predictor:
    """The profile's predictor, corrected by training unless `learn` is off. InputError."""
    storages = {storage_of(r.case.method.storage).priced_as for r in training}
    study = open_study(grid.machine, storage=min(storages, default="sym"))
    return taught(study, training) if grid.learn else study


class Judgement(NamedTuple):
    """Predictions compared with the runs that they predicted."""

    cells: list[ScoredConfiguration]  # of both methods
    scores: dict[str, PredictionScore]  # of each method, and of the baseline
    runs: int  # held-out runs
    unpredicted: int  # held-out runs without a prediction from before they began
    state: list[StateChange]  # of the hosts, in the scored runs relative to the training


def check_cases(training: Sequence[Record], cases: Sequence[Case]) -> None:
    """Raises InputError if held-out cases are too few, name hosts, or are in training."""
    for case in cases:
        if case.placement.hosts or case.placement.per_node:
            chosen = f"hosts = '{case.placement.hosts}', per_node = {case.placement.per_node}"
            raise InputError(
                f"a case with {chosen}: expected neither, as predictions take the profile's hosts in order"
            )
    taught, held = ({key(c): c for c in some} for some in ([r.case for r in training], cases))
    check_held_out(list(taught.values()), list(held.values()), [r.case.question.mesh for r in training])


def predict_held_out(
    study: Predictor, folder: Path, training: Sequence[Record], cases: Sequence[Case], *, learn: bool
) -> int:
    """Predict the held-out cases by both methods; the number of
    new ones. Raises InputError."""
    teachers = training if learn else []
    correction = learn_closed_form(study, teachers)
    written = _predict_all(cases, folder, SIMULATION, lambda case: prediction_of(study, study.predict(case)))
    return written + _predict_all(
        cases, folder, ANALYTIC, lambda case: in_closed_form(study, correction, teachers, case)
    )


def _predict_all(cases: Sequence[Case], folder: Path, method: str, say: Callable[[Case], Prediction]) -> int:
    """Write the predictions that are still missing; return their number."""
    known = [p.predicted for p in predictions(folder) if p.predicted.method == method]
    written = 0
    for case in cases:
        if any(_about(p, case) for p in known):
            continue
        prediction = say(case)
        known.append(prediction.predicted)
        save_prediction(prediction, folder / f"{prediction.seal[:16]}.json")
        written += 1
    return written


def _about(said: Predicted, case: Case) -> bool:
    """Whether a prediction is about this case, its mesh and problem as they are now."""
    if key(said.case) != key(case) or said.mesh != resolve(case.question.mesh).hash:
        return False
    return not said.problem or content(said.problem) == content(problem_of(case))


def predictions(folder: Path) -> list[Prediction]:
    """The predictions in a folder; [] if it does not exist."""
    return [load_prediction(path) for path in sorted(folder.glob("[!.]*.json"))]


def all_predictions(folder: Path) -> list[Prediction]:
    """The predictions in a folder. Raises InputError if there are none."""
    found = predictions(folder)
    if not found:
        raise InputError(f"{folder}: no predictions; expected --cases CAMPAIGN.toml before the runs")
    return found


def judge_held_out(
    study: Predictor, said: Sequence[Prediction], training: Sequence[Record], held_out: Sequence[Record]
) -> Judgement:
    """Score predictions on the held-out runs, and the baseline fitted to training runs.

    Raises InputError if no run can be compared, or held-out and training runs overlap.
    """
    cells, kept = judge(said, held_out)
    if not cells:
        raise InputError("no held-out run began after its prediction; expected predictions before the runs")
    taught = [grid_of(study, runs) for runs in by_case(training).values()]
    check_held_out(taught, cells, [r.case.question.mesh for r in training])
    held = [grid_of(study, runs) for runs in kept]
    closed, _ = judge(said, held_out, ANALYTIC)
    scores = {"fembench": score(cells)} | ({"fembench, analytic": score(closed)} if closed else {})
    scores[BASELINE] = score(baseline_cells(taught, held, cells))
    scored = [record for runs in kept for record in runs]
    return Judgement(
        cells + closed,
        scores,
        len(held_out),
        len(held_out) - len(scored),
        changes(study.state, readings_of(scored)),
    )


def judge(
    said: Sequence[Prediction], held_out: Sequence[Record], method: str = SIMULATION
) -> tuple[list[ScoredConfiguration], list[list[Record]]]:
    """(cells, their runs), for held-out runs that a method predicted before they began."""
    known = [p.predicted for p in said if p.predicted.method == method]
    cells, kept = [], []
    for group in by_case(held_out).values():
        p = next((p for p in known if any(not difference(p, r) for r in group)), None)
        runs = [r for r in group if p and not difference(p, r) and is_later(began(r), p.created)]
        if p is None or not runs:
            continue
        times = [measured(r).iteration for r in runs]
        sets = np.concatenate([measured(r).each for r in runs])
        variation = float(np.std(sets, ddof=1) / np.mean(sets)) if len(sets) > 1 else 0.0
        cells.append(
            ScoredConfiguration(
                p.case.question.mesh,
                p.case.placement.ranks,
                p.case.placement.shares,
                p.iteration,
                p.low,
                p.high,
                float(np.median(times)),
                variation,
                method,
                tuple(times),
            )
        )
        kept.append(runs)
    return cells, kept


def grid_of(study: Predictor, runs: Sequence[Record]) -> Grid:
    """The data on one configuration that the baseline may use."""
    work = of_record(runs[0])
    slots = study.slots(work.ranks)
    units = sum(work.product_units()) / work.ranks
    name = product_name(work.case.method)
    speeds = [study.rates.speed(s.rank, name, units, work.ranks) for s in slots]
    return Grid(
        ranks=work.ranks,
        work=float(sum(work.product_units())),
        speeds=[s / max(speeds) for s in speeds],
        measured=float(np.median([measured(r).iteration for r in runs])),
    )
