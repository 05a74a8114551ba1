"""Score predictions against runs made afterwards.

GRID.toml names a machine profile, a campaign of training runs, a campaign of held-out runs (at least two of
five configurations, with other numbers of ranks, meshes and shares) and a folder for predictions. Call it
with --cases before the held-out campaign: it writes the predictions, simulated and in closed form. Call it
again after the campaign: it prints their errors and those of simpler models. If the speed of the cores or of
the memory changed after the training, the verdict is INVALID, with the reason. Records of small programs
contain their predictions: name their folder in GRID.toml (apps = "…"), or give the folder instead of
GRID.toml.

Examples:
  fembench sweep train.toml && fembench validate grid.toml --cases held.toml
  fembench sweep held.toml && fembench validate grid.toml
  fembench validate results/apps
"""

import argparse
import sys
from pathlib import Path
from types import ModuleType

from fembench.base.plugins import needed
from fembench.base.progress import progress, working


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "grid",
        metavar="GRID.toml|DIR",
        help="keys machine, training, held_out, predictions, apps; or a folder with records of programs",
    )
    parser.add_argument(
        "--cases", metavar="CAMPAIGN.toml", help="predict the configurations of this campaign"
    )
    parser.add_argument(
        "--json", action="store_true", help="print errors and scores as JSON instead of tables"
    )


def run(options: argparse.Namespace) -> int:
    from fembench.model.grid import all_predictions, judge_held_out, read_grid, study_of
    from fembench.records.store import load_all, load_each

    if Path(options.grid).is_dir():
        cells = _of_programs(options.grid)
        synthetic = _synthetic(_programs().load_apps(options.grid))
        return _print(options, cells, _programs().app_scores(cells), synthetic, None)
    grid = read_grid(Path(options.grid))
    training = _usable(load_each(grid.training), "training")
    study = study_of(grid, training)
    if options.cases:
        return _predict(options, grid, study, training)
    said = all_predictions(Path(grid.predictions))
    found = judge_held_out(study, said, training, _usable(load_all(grid.held_out), "held_out"))
    if found.unpredicted:
        progress(
            f"note: {found.unpredicted} of {found.runs} held-out runs left out: not predicted before "
            "they began"
        )
    cells, scores = found.cells, found.scores
    if grid.apps:
        programs = _programs().app_cells(_programs().load_apps(grid.apps))
        cells, scores = cells + programs, scores | _programs().app_scores(programs)
    return _print(options, cells, scores, [study.profile.environment.synthetic], found.state)


def _programs() -> ModuleType:
    """What reads and scores the records of programs. Raises InputError if it is not installed."""
    return needed("scores", "programs", "scoring programs")


def _of_programs(folder: str) -> list:
    from fembench.base.errors import InputError

    cells = _programs().app_cells(_programs().load_apps(folder))
    if not cells:
        raise InputError(
            f"{folder}: no program with a prediction; expected runs of fembench study app --model"
        )
    return cells


def _synthetic(records: list) -> list[str]:
    """The kinds of emulation, each once."""
    return list(dict.fromkeys(r.environment.synthetic for r in records if r.predicted))


def _usable(records: list, what: str) -> list:
    """The records that are not INVALID; reports how many are."""
    from fembench.model.configuration import not_invalid

    kept, note = not_invalid(records)
    if note:
        progress(f"note: {what}: {note}")
    return kept


def _predict(options: argparse.Namespace, grid, study, training: list) -> int:
    from fembench.base.units import plural
    from fembench.bench.campaign import read_campaign
    from fembench.launch.scratch import occupied
    from fembench.model.grid import check_cases, predict_held_out

    cases = [item.case for item in read_campaign(Path(options.cases))[1]]
    check_cases(training, cases)
    with occupied(Path(grid.predictions)), working(f"validate: predicting {plural(len(cases), 'run')}"):
        written = predict_held_out(study, Path(grid.predictions), training, cases, learn=grid.learn)
    print(f"{written} predictions written to {grid.predictions}; next: fembench sweep {options.cases}")
    return 0


def _print(
    options: argparse.Namespace, cells: list, scores: dict, synthetic: list[str], state: list | None
) -> int:
    """Print cells and scores; 1 if too few are left for a score, or the machine changed after the training.

    `state`: the changes; None for programs, whose calibration is part of their record.
    """
    import json

    from fembench.model.drifted import stale, state_text
    from fembench.model.score import cell_table, score_table, too_noisy

    reason = stale(state or [])
    why = [line for line in (f"INVALID: {reason}" if reason else "", too_noisy(cells, scores)) if line]
    if options.json:
        tree = {"cells": [c._asdict() for c in cells]} | {n: s._asdict() for n, s in scores.items()}
        print(json.dumps(tree | {"state": {"stale": reason, "changes": [c._asdict() for c in state or []]}}))
    else:
        ways = [f"SYNTHETIC: {way}\n" for way in synthetic if way]
        marked = ["INVALID: these errors do not test the predictions (reason below)"] if why else []
        print(*ways, cell_table(cells), "", *marked, score_table(scores), sep="\n")
        if state is not None and not reason:
            print(f"\n{state_text(state)}")
    for line in why:
        print(line if options.json else f"\n{line}", file=sys.stderr if options.json else sys.stdout)
    return 1 if why else 0
