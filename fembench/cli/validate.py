"""Keep score: predict a grid of runs before they are made, then hold the predictions against them.

GRID.toml names a machine profile, a campaign of training runs, one of held-out runs (at least two of five
configurations; other numbers of ranks, meshes and shares) and a folder for predictions. Called before the
held-out campaign is run it writes the predictions; called after, it judges them, beside cruder models:
  fembench sweep train.toml && fembench validate grid.toml --cases held.toml
  fembench sweep held.toml && fembench validate grid.toml
"""

import argparse
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("grid", metavar="GRID.toml", help="machine, training, held_out, predictions")
    parser.add_argument(
        "--cases", metavar="CAMPAIGN.toml", help="predict the configurations of this campaign"
    )
    parser.add_argument("--json", action="store_true", help="print cells and scores as JSON")


def run(options: argparse.Namespace) -> int:
    from fembench.predict.grid import read_grid, study_of
    from fembench.records.store import load_all

    grid = read_grid(Path(options.grid))
    training = load_all(grid.training)
    study = study_of(grid, training)
    if options.cases:
        return _predict(options, grid, study)
    return _judge(options, grid, study, training)


def _predict(options: argparse.Namespace, grid, study) -> int:
    from fembench.bench.campaign import read_campaign
    from fembench.predict.grid import predict_all

    folder = Path(grid.predictions)
    cases = [item.case for item in read_campaign(Path(options.cases))[1]]
    written = predict_all(study, cases, folder)
    print(f"{written} predictions written to {folder}; next: fembench sweep {options.cases}")
    return 0


def _judge(options: argparse.Namespace, grid, study, training: list) -> int:
    from fembench.base.errors import InputError
    from fembench.predict.grid import by_case, grid_of, judge, predictions
    from fembench.predict.score import baseline_cells, cell_table, check_held_out, score, score_table
    from fembench.records.store import load_all

    said = predictions(Path(grid.predictions))
    if not said:
        raise InputError(
            f"no predictions in {grid.predictions}; expected --cases CAMPAIGN.toml before the runs"
        )
    cells, kept = judge(said, load_all(grid.held_out))
    if not cells:
        raise InputError("no held-out run is younger than its prediction; expected runs made after it")
    taught = [grid_of(study, runs) for runs in by_case(training).values()]
    check_held_out(taught, cells, [r.case.mesh for r in training])
    held = [grid_of(study, runs) for runs in kept]
    scores = {"fembench": score(cells)}
    scores |= {name: score(found) for name, found in baseline_cells(taught, held, cells).items()}
    if options.json:
        import json

        print(
            json.dumps({"cells": [c._asdict() for c in cells]} | {n: s._asdict() for n, s in scores.items()})
        )
    else:
        synthetic = study.profile.environment.synthetic
        print(*([f"SYNTHETIC: {synthetic}\n"] if synthetic else []), cell_table(cells), "", sep="\n")
        print(score_table(scores))
    if scores["fembench"].invalid:
        left_out = scores["fembench"].left_out
        print(f"\nINVALID: {left_out} of {len(cells)} cells vary too much from run to run to be judged by")
        return 1
    return 0
