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

AS_SEEN = (
    "network: message costs are those observed in the run, which include waiting and interruptions; "
    "--machine PROFILE has measured ones"
)


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

    from fembench.base.units import seconds
    from fembench.model.engine import simulate
    from fembench.model.events import simulate_events
    from fembench.model.exports import write_goal, write_smpi, write_timeline
    from fembench.model.graph import load_graph
    from fembench.model.measures import (
        bottlenecks,
        loop_table,
        phase_table,
        rank_table,
        residual_text,
        result_tree,
    )
    from fembench.model.path import timeline
    from fembench.model.planner import make_plan

    graph = load_graph(options.graph)
    machine = _machine(options, graph)
    plan = make_plan(graph, machine)
    result = simulate_events(plan) if machine.contention else simulate(plan, period=not options.every_turn)
    if options.chrome:
        write_timeline(timeline(result), plan.phases, machine, options.chrome)
    if options.goal:
        write_goal(graph, machine, options.goal)
    replay = write_smpi(graph, machine, options.smpi) if options.smpi else ""
    if options.json:
        print(json.dumps(result_tree(plan, result), indent=1))
        return 0
    each = f", {seconds(result.makespan / graph.iterations)} per iteration" if graph.iterations else ""
    print(f"{graph.source}: {seconds(result.makespan)}{each}\n")
    if graph.residual:
        print(f"{residual_text(graph)}\n")
    if graph.note:
        print(f"{graph.note}\n")
    print(rank_table(plan, result), phase_table(plan, result), loop_table(graph), sep="\n\n")
    if options.base:
        print(f"\n{_parallel(options.base, machine, result)}")
    if options.against:
        print(f"\n{_errors(options.against, graph, result)}")
    print("", *bottlenecks(plan, result, [machine.names[h] for h in machine.host]), sep="\n")
    if not (options.machine or options.link):
        print(AS_SEEN)
    skipped = sum(run.repeats * run.period for run in result.runs)
    if skipped:
        print(f"turns of loops: {result.simulated} simulated, {skipped} identical ones skipped")
    if replay:
        print(f"replay: {replay}")
    return 0


def _machine(options: argparse.Namespace, graph):
    """The machine that the options describe."""
    import dataclasses

    from fembench.base.errors import InputError
    from fembench.model.graph_machine import even_machine_for, machine_in_file
    from fembench.model.machine import faster_network
    from fembench.records.hlogp import parse_link

    try:
        speeds = tuple(float(word) for word in options.speeds.split(",")) if options.speeds else ()
    except ValueError:
        raise InputError(f"--speeds '{options.speeds}': expected numbers such as 1,1,0.5") from None
    if options.machine:
        machine = machine_in_file(options.machine, graph, speeds, options.contention)
    else:
        link = parse_link(options.link, overhead=True) if options.link else None
        machine = even_machine_for(graph, link, speeds, bool(options.contention))
    if options.no_overlap:
        machine = dataclasses.replace(machine, overlap=False)
    return machine if options.network == 1 else faster_network(machine, options.network)


def _parallel(path: str, machine, result) -> str:
    """Measures relative to the graph of one rank."""
    from fembench.model.against import against_one_rank
    from fembench.model.graph import load_graph

    found = against_one_rank(load_graph(path), machine, result)
    return "\n".join(f"{name} {value:.3g}" for name, value in found._asdict().items())


def _errors(path: str, graph, result) -> str:
    """Errors relative to the times of a run."""
    from fembench.model.against import errors_text
    from fembench.model.configuration import not_invalid
    from fembench.records.store import load

    record = not_invalid([load(path)])[0][0]
    return errors_text(record, graph, result)
