"""Score predictions against runs made afterwards.

GRID.toml names a machine profile, a campaign of training runs, a campaign of held-out
runs (at least two of five configurations, with other numbers of ranks, meshes and
shares) and a folder for predictions. Call it with --cases before the held-out campaign:
it writes the predictions, simulated and in closed form. Call it again after the
campaign: it prints their errors and those of simpler models. If the speed of the cores
or of the memory changed after the training, the verdict is INVALID, with the reason.

Examples:
  fembench sweep train.toml && fembench validate grid.toml --cases held.toml
  fembench sweep held.toml && fembench validate grid.toml
"""

import argparse
import sys

OPTIONS = """
grid GRID.toml: keys machine, training, held_out, predictions
--cases CAMPAIGN.toml: predict the configurations of this campaign
--json: print errors and scores as JSON instead of tables
"""


def run(options: argparse.Namespace) -> int:
    """1 if too few runs are left for a score, or the machine changed after the training."""
    import json

    from fembench.workflows.predict import predicted_ahead, text_of, validated

    if options.cases:
        written, folder = predicted_ahead(options.grid, options.cases)
        print(f"{written} predictions written to {folder}; next: fembench sweep {options.cases}")
        return 0
    found = validated(options.grid)
    if options.json:
        scores = {name: score._asdict() for name, score in found.scores.items()}
        tree = {"cells": [c._asdict() for c in found.cells], **scores}
        changes = [change._asdict() for change in found.state or []]
        print(json.dumps(tree | {"state": {"stale": found.stale, "changes": changes}}))
    else:
        print(text_of(found))
    for line in found.why:
        print(line if options.json else f"\n{line}", file=sys.stderr if options.json else sys.stdout)
    return int(bool(found.why))
