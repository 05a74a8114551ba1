"""Score predictions against runs made afterwards.

GRID.toml names a machine profile, a campaign of training runs, a campaign of held-out runs (at least two of
five configurations, with other numbers of ranks, meshes and shares) and a folder for predictions. Call it
with --cases before the held-out campaign: it writes the predictions, simulated and in closed form. Call it
again after the campaign: it prints their errors, beside those of simpler models. Records of small programs
hold their own predictions: name their folder in GRID.toml (apps = "…"), or give the folder instead of
GRID.toml.

Examples:
  fembench sweep train.toml && fembench validate grid.toml --cases held.toml
  fembench sweep held.toml && fembench validate grid.toml
  fembench validate results/apps
"""

import argparse
import sys
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "grid",
        metavar="GRID.toml|FOLDER",
        help="machine, training, held_out, predictions, apps; or records of fembench app",
    )
    parser.add_argument(
        "--cases", metavar="CAMPAIGN.toml", help="predict the configurations of this campaign"
    )
    parser.add_argument("--json", action="store_true", help="print cells and scores as JSON")


def run(options: argparse.Namespace) -> int:
    from fembench.model.grid import read_grid, study_of
    from fembench.records.store import load_all
    from fembench.studies.programs.record import load_apps
    from fembench.studies.programs.scored import app_cells, app_scores

    if Path(options.grid).is_dir():
        cells = _of_apps(options.grid)
        return _print(options, cells, app_scores(cells), _synthetic(load_apps(options.grid)))
    grid = read_grid(Path(options.grid))
    training = _usable(load_all(grid.training), "training")
    study = study_of(grid, training)
    if options.cases:
        return _predict(options, grid, study, training)
    cells, scores = _judge(grid, study, training)
    if grid.apps:
        programs = app_cells(load_apps(grid.apps))
        cells, scores = cells + programs, scores | app_scores(programs)
    return _print(options, cells, scores, [study.profile.environment.synthetic])


def _of_apps(folder: str) -> list:
    from fembench.base.errors import InputError
    from fembench.studies.programs.record import load_apps
    from fembench.studies.programs.scored import app_cells

    cells = app_cells(load_apps(folder))
    if not cells:
        raise InputError(f"{folder}: no program with a prediction; expected runs of fembench app --model")
    return cells


def _synthetic(records: list) -> list[str]:
    """How times were made up, once each."""
    return list(dict.fromkeys(r.environment.synthetic for r in records if r.predicted))


def _usable(records: list, what: str) -> list:
    """The records that are not INVALID; says how many are."""
    from fembench.cli.shared import progress
    from fembench.model.configuration import not_invalid

    kept, note = not_invalid(records)
    if note:
        progress(f"note: {what}: {note}")
    return kept


def _note_unpredicted(runs: int, judged: int) -> None:
    """Say how many held-out runs are not judged."""
    from fembench.cli.shared import progress

    if judged < runs:
        progress(f"note: {runs - judged} of {runs} held-out runs left out: not predicted before they began")


def _distinct(cases: list) -> list:
    """One case of each configuration."""
    from fembench.model.configuration import key

    return list({key(case): case for case in cases}.values())


def _predict(options: argparse.Namespace, grid, study, training: list) -> int:
    import functools

    from fembench.bench.campaign import read_campaign
    from fembench.launch.scratch import occupied
    from fembench.model.closed_form_learn import in_closed_form, learn_closed_form
    from fembench.model.grid import predict_all, simulated
    from fembench.model.score import check_held_out
    from fembench.records.prediction import ANALYTIC, SIMULATION

    folder = Path(grid.predictions)
    cases = [item.case for item in read_campaign(Path(options.cases))[1]]
    check_held_out(_distinct([r.case for r in training]), _distinct(cases), [r.case.mesh for r in training])
    teachers = training if grid.learn else []
    closed = functools.partial(in_closed_form, study, learn_closed_form(study, teachers), teachers)
    with occupied(folder):
        written = predict_all(cases, folder, SIMULATION, functools.partial(simulated, study))
        written += predict_all(cases, folder, ANALYTIC, closed)
    print(f"{written} predictions written to {folder}; next: fembench sweep {options.cases}")
    return 0


def _judge(grid, study, training: list) -> tuple[list, dict]:
    """(cells of both methods, scores: of each method and of cruder models)."""
    from fembench.base.errors import InputError
    from fembench.model.configuration import by_case
    from fembench.model.grid import grid_of, judge, predictions
    from fembench.model.score import baseline_cells, check_held_out, score
    from fembench.records.prediction import ANALYTIC
    from fembench.records.store import load_all

    said = predictions(Path(grid.predictions))
    if not said:
        raise InputError(
            f"no predictions in {grid.predictions}; expected --cases CAMPAIGN.toml before the runs"
        )
    held_out = _usable(load_all(grid.held_out), "held_out")
    cells, kept = judge(said, held_out)
    if not cells:
        raise InputError("no held-out run is younger than its prediction; expected runs made after it")
    taught = [grid_of(study, runs) for runs in by_case(training).values()]
    _note_unpredicted(len(held_out), sum(map(len, kept)))
    check_held_out(taught, cells, [r.case.mesh for r in training])
    held = [grid_of(study, runs) for runs in kept]
    closed, _ = judge(said, held_out, ANALYTIC)
    scores = {"fembench": score(cells)} | ({"fembench, analytic": score(closed)} if closed else {})
    scores |= {name: score(found) for name, found in baseline_cells(taught, held, cells).items()}
    return cells + closed, scores


def _print(options: argparse.Namespace, cells: list, scores: dict, synthetic: list[str]) -> int:
    """Cells and scores; 1 where too few are left to judge by."""
    import json

    from fembench.model.score import cell_table, score_table

    if options.json:
        tree = {"cells": [c._asdict() for c in cells]} | {n: s._asdict() for n, s in scores.items()}
        print(json.dumps(tree))
    else:
        ways = [f"SYNTHETIC: {way}\n" for way in synthetic if way]
        print(*ways, cell_table(cells), "", score_table(scores), sep="\n")
    ours = [s for name, s in scores.items() if not name.endswith("fitted") and name != "ideal sum of speeds"]
    left_out, noisy = sum(s.left_out for s in ours), any(s.invalid for s in ours)
    if noisy:
        why = f"INVALID: {left_out} of {len(cells)} cells vary too much from run to run to be judged by"
        print(why if options.json else f"\n{why}", file=sys.stderr if options.json else sys.stdout)
    return 1 if noisy else 0
