"""Simulate a run from its execution graph.

Prints how long each rank is busy, waits and spends on messages, when it finishes, how much each phase
contributes to the critical path, and what to improve first. The network comes from a machine profile or
from --link; a graph made from a record can also use the message costs observed in that run.

Examples:
  fembench simulate graph.json
  fembench simulate graph.json --machine machine.json
  fembench simulate graph.json --link 50e-6,125e6 --speeds 1,1,0.5,1 --chrome timeline.json
  fembench simulate graph.json --link 50e-6,125e6 --smpi replay --goal graph.goal
"""

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import real

    parser.add_argument("graph", metavar="GRAPH", help="execution graph made by fembench trace")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--machine", metavar="FILE", help="machine profile with a network, or an HLogP file (Mendes 2004)"
    )
    where.add_argument(
        "--link",
        default="",
        metavar="SECONDS,BYTES/S[,SECONDS]",
        help="latency, bandwidth and overhead of messages between all ranks",
    )
    parser.add_argument("--base", metavar="GRAPH", help="the graph of one rank, for speedup and efficiency")
    parser.add_argument(
        "--against",
        metavar="RECORD",
        help="print the errors relative to the CG times of this run, without and with the residual of the "
        "run that the graph is of",
    )
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

    files = parser.add_argument_group("export")
    files.add_argument("--chrome", metavar="FILE", help="timeline for ui.perfetto.dev")
    files.add_argument("--smpi", metavar="DIR", help="time-independent trace and platform for SimGrid")
    files.add_argument("--goal", metavar="FILE", help="schedule for LogGOPSim")


def run(options: argparse.Namespace) -> int:
    import json

    from fembench.workflows.simulate import exported, result_tree, simulated, text_of

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
    replay = exported(found, chrome=options.chrome, goal=options.goal, smpi=options.smpi)
    if options.json:
        print(json.dumps(result_tree(found.plan, found.outcome), indent=1))
        return 0
    print(text_of(found, base=options.base, against=options.against))
    if replay:
        print(f"replay: {replay}")
    return 0
