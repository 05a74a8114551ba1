"""Turn measurements into each rank's share of the mesh.

A rule says how: `time` uses the total time of runs; `rate` the speed in each phase,
from a machine profile; `comm` equalises finish times including communication, and needs
--machine; `tasks` gives each host a whole number of equal tasks, from runs on each host
alone.

Examples:
  fembench weights results/single/runs/m3-*.json -o weights.json
  fembench weights results/scaling --mesh m --ranks 2 -o weights.json
  fembench weights results/alone --rule tasks --ranks 8
  fembench weights machine.json --rule rate -o weights.json
  fembench weights results/scaling --rule comm --machine machine.json --export metis
"""

import argparse

from fembench.base.config import json_text
from fembench.base.terminal import write_unfitted
from fembench.cli.options import call, listed
from fembench.records.weights import RULES, save_weights
from fembench.workflows.command import EXPORTS

OPTIONS = f"""
records RECORD+: records, folders of records, a machine profile, or a weights file
--rule RULE: how shares follow from measurements (default: time; rate for a machine profile)
-o, --output FILE: write the weights (JSON)
--export FORMAT: print the shares for another program: {listed(EXPORTS)}
--json: print the weights as JSON instead of a table

[which records]
--mesh MESH: only records of this mesh; with a profile of devices, the mesh to share
--ranks N: only records with this number of ranks; with rule tasks, the total number of tasks

[rule comm]
--machine FILE: machine profile with a network

[from a machine profile]
--storage STORAGE = sym: storage whose product speed is used
--iterations N = 100: CG iterations per assembly
"""
KINDS = {"rule": RULES, "export": tuple(EXPORTS)}


def run(options: argparse.Namespace) -> int:
    from fembench.report.work import as_table
    from fembench.workflows.cases import warn_of_doubts
    from fembench.workflows.weights import WeightsAsked, derived

    weights = derived(call(WeightsAsked, options, sources=options.records))
    if options.output:
        save_weights(weights, options.output)
    if options.export:
        write_unfitted(EXPORTS[options.export].text(weights))
        warn_of_doubts(weights)
    elif options.json:
        print(json_text(weights))
    else:
        print(as_table(weights))
        if options.output:
            print(f"weights: {options.output}")
    return 0
