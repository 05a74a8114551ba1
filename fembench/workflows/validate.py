"""Predictions made ahead of runs, and their scores afterwards."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fembench.base.progress import progress, working
from fembench.base.units import plural
from fembench.bench.campaign import read_campaign
from fembench.launch.scratch import occupied
from fembench.model.configuration import not_invalid
from fembench.model.drifted import StateChange, stale, state_text
from fembench.model.grid import (
    GridFile,
    all_predictions,
    check_cases,
    judge_held_out,
    predict_held_out,
    read_grid,
    study_of,
)
from fembench.model.predictor import Predictor
from fembench.model.score import PredictionScore, ScoredConfiguration, cell_table, score_table, too_noisy
from fembench.records.record import Record
from fembench.records.store import load_all, load_each


class Validated(NamedTuple):
    """Predictions compared with runs."""

    cells: Sequence[ScoredConfiguration]
    scores: dict[str, PredictionScore]
    synthetic: Sequence[str]  # how hosts were emulated
    state: list[StateChange]  # of the hosts since the training

    @property
    def stale(self) -> str:
        """Why the predictions no longer hold; "" if they do."""
        return stale(self.state)

    @property
    def why(self) -> list[str]:
        """Why these errors do not test the predictions, a line each; [] if they do."""
        invalid = f"INVALID: {self.stale}" if self.stale else ""
        return [line for line in (invalid, too_noisy(self.cells, self.scores)) if line]


def predicted_ahead(grid_file: Path | str, campaign: Path | str) -> tuple[int, str]:
    """Predict the runs of a campaign before they begin: (new predictions, their folder).

    Raises InputError.
    """
    grid, training, study = _opened(grid_file)
    cases = [item.case for item in read_campaign(Path(campaign))[1]]
    check_cases(training, cases)
    folder = Path(grid.predictions)
    with occupied(folder), working(f"validate: predicting {plural(len(cases), 'run')}"):
        return predict_held_out(study, folder, training, cases, learn=grid.learn), grid.predictions


def validated(grid_file: Path | str) -> Validated:
    """The scores of a GRID.toml. Raises InputError."""
    grid, training, study = _opened(grid_file)
    said = all_predictions(Path(grid.predictions))
    found = judge_held_out(study, said, training, _usable(load_all(grid.held_out), "held_out"))
    if found.unpredicted:
        progress(
            f"note: {found.unpredicted} of {found.runs} held-out runs left out: not predicted before "
            "they began"
        )
    return Validated(found.cells, found.scores, [study.profile.environment.synthetic], found.state)


def text_of(found: Validated) -> str:
    """The tables of errors and scores."""
    parts = [f"SYNTHETIC: {way}\n" for way in found.synthetic if way] + [cell_table(found.cells), ""]
    parts += ["INVALID: these errors do not test the predictions (reason below)"] if found.why else []
    parts.append(score_table(found.scores))
    if not found.stale:
        parts += ["", state_text(found.state)]
    return "\n".join(parts)


def _opened(grid_file: Path | str) -> tuple[GridFile, list[Record], Predictor]:
    """The file, its training runs, and the predictor that they teach."""
    grid = read_grid(Path(grid_file))
    training = _usable(load_each(grid.training), "training")
    return grid, training, study_of(grid, training)


def _usable(records: list[Record], what: str) -> list[Record]:
    """The records that are not INVALID; tells how many are."""
    kept, note = not_invalid(records)
    if note:
        progress(f"note: {what}: {note}")
    return kept
