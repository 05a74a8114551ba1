"""Simulate a run from its execution graph.

Prints how long each rank is busy, waits and spends on messages, when it finishes, how much each phase
contributes to the critical path, and what to improve first. The network comes from a machine profile or
from --link; a graph made from a record can also use the message costs observed in that run.

Examples:
  fembench simulate graph.json
  fembench simulate graph.json --machine machine.json
  fembench simulate graph.json --link 50e-6,125e6 --speeds 1,1,0.5,1 --chrome timeline.json
"""

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import real

    parser.add_argument("graph", metavar="GRAPH", help="execution graph made by fembench trace")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--machine", metavar="FILE", help="machine profile with a network")
    where.add_argument(
        "--link",
        default="",
        metavar="SECONDS,BYTES/S[,SECONDS]",
        help="latency, bandwidth and overhead of messages between all ranks",
    )
    parser.add_argument(
        "--against",
        metavar="RECORD",
        help="print the errors relative to the CG times of this run, without and with the residual of the "
        "run that the graph is of",
    )
    parser.add_argument("--chrome", metavar="FILE", help="write the timeline, for ui.perfetto.dev")
    parser.add_argument("--json", action="store_true", help="print the result as JSON instead of tables")

    if_ = parser.add_argument_group("what if")
    if_.add_argument(
        "--speeds", default="", metavar="SPEEDS", help="speed of each rank relative to the recorded one"
    )
    if_.add_argument(
        "--network",
        type=real(0, above=True),
        default=1.0,
        metavar="FACTOR",
        help="a network that is faster by this factor",
    )
    if_.add_argument(
        "--contention",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="send a host's messages one after another (default: as far as --machine measured it)",
    )
    if_.add_argument(
        "--no-overlap",
        action="store_true",
        help="messages above the switch size progress only while both ranks wait",
    )
    if_.add_argument("--every-turn", action="store_true", help="simulate every turn of every loop")


def run(options: argparse.Namespace) -> int:
    import json

    from fembench.workflows.simulate import result_tree, simulated, text_of, write_chrome

    found = simulated(
        options.graph,
        machine=options.machine or "",
        link=options.link,
        speeds=options.speeds,
        network=options.network,
        contention=options.contention,
        overlap=not options.no_overlap,
        period=not options.every_turn,
    )
    if options.chrome:
        write_chrome(found, options.chrome)
    if options.json:
        print(json.dumps(result_tree(found.plan, found.outcome), indent=1))
        return 0
    print(text_of(found, against=options.against))
    return 0
