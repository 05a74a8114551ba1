"""Measure an execution graph, or export it to other simulators.

Examples:
  fembench study graph graph.json --link 50e-6,125e6 --smpi replay --goal graph.goal
  fembench study graph graph.json --machine modeller.txt --base one.json
"""

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("graph", metavar="GRAPH", help="execution graph made by fembench trace")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--machine", metavar="FILE", help="machine profile with a network, or an HLogP file of study modeller"
    )
    where.add_argument(
        "--link",
        default="",
        metavar="SECONDS,BYTES/S[,SECONDS]",
        help="latency, bandwidth and overhead of messages between all ranks",
    )
    parser.add_argument(
        "--base", metavar="GRAPH", help="the graph of one rank, for speedup, efficiency and their kin"
    )
    parser.add_argument(
        "--smpi", metavar="DIR", help="write a time-independent trace and platform for SimGrid"
    )
    parser.add_argument("--goal", metavar="FILE", help="write a schedule for LogGOPSim")


def run(options: argparse.Namespace) -> int:
    from fembench.base.units import seconds
    from fembench.model.engine import simulate
    from fembench.model.graph import load_graph
    from fembench.model.planner import make_plan
    from fembench_studies.graphs.replays import write_goal, write_smpi
    from fembench_studies.graphs.speedup import against_one_rank

    graph = load_graph(options.graph)
    machine = _machine(options, graph)
    outcome = simulate(make_plan(graph, machine))
    print(f"{graph.source}: {seconds(outcome.makespan)}")
    if options.base:
        measures = against_one_rank(load_graph(options.base), machine, outcome)._asdict()
        print("\n".join(f"{name} {value:.3g}" for name, value in measures.items()))
    if options.goal:
        write_goal(graph, machine, options.goal)
    if options.smpi:
        print(f"replay: {write_smpi(graph, machine, options.smpi)}")
    return 0


def _machine(options: argparse.Namespace, graph):
    """The machine of the link, of the profile, or of the modeller's file. Raises InputError."""
    from fembench.base.config import read_text
    from fembench.model.graph_machine import even_machine_for, machine_in_file
    from fembench.records.hlogp import parse_link
    from fembench_studies.graphs.modeller import machine_of_model, read_model

    if not options.machine:
        return even_machine_for(graph, parse_link(options.link, overhead=True) if options.link else None)
    if read_text(options.machine).lstrip().startswith("{"):
        return machine_in_file(options.machine, graph)
    return machine_of_model(read_model(options.machine), graph.ranks)
