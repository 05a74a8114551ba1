"""Simulate a run from its execution graph.

Prints how long each rank is busy, waits and spends on messages, when it finishes, how
much each phase contributes to the critical path, and what to improve first. The network
comes from a machine profile or from --link; a graph made from a record can also use the
message costs observed in that run.

Examples:
  fembench simulate graph.json
  fembench simulate graph.json --machine machine.json
  fembench simulate graph.json --link 50e-6,125e6 --speeds 1,1,0.5,1 --chrome timeline.json
"""

import argparse
import json

from fembench.base.progress import working
from fembench.cli.options import call, real

OPTIONS = """
graph GRAPH: execution graph made by fembench trace
| --machine FILE: machine profile with a network
| --link SECONDS,BYTES/S[,SECONDS]: latency, bandwidth and overhead of messages between all ranks
--against RECORD: print the errors relative to the CG times of this run, without and
    with the residual of the run that the graph is of
--chrome FILE: write the timeline, for ui.perfetto.dev
--json: print the result as JSON instead of tables

[what if]
--speeds SPEEDS: speed of each rank relative to the recorded one
--network FACTOR = 1: a network that is faster by this factor
--[no-]contention: send a host's messages one after another (default: as far as
    --machine measured it)
--no-overlap: messages above the switch size progress only while both ranks wait
--every-turn: simulate every turn of every loop
"""
KINDS = {"network": real(0, inner=True)}


def run(options: argparse.Namespace) -> int:
    from fembench.workflows.simulate import result_tree, simulated, text_of, write_chrome

    with working(f"simulate: {options.graph}"):
        found = call(simulated, options, overlap=not options.no_overlap, period=not options.every_turn)
    if options.chrome:
        write_chrome(found, options.chrome)
    if options.json:
        print(json.dumps(result_tree(found.plan, found.outcome), indent=1))
        return 0
    print(text_of(found, against=options.against))
    return 0
