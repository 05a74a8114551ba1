"""Measure an execution graph, or export it to other simulators.

Examples:
  fembench study graph graph.json --link 50e-6,125e6 --smpi replay --goal graph.goal
  fembench study graph graph.json --machine modeller.txt --base one.json
"""

import argparse

OPTIONS = """
graph GRAPH: execution graph made by fembench trace
| --machine FILE: machine profile with a network, or an HLogP file of study modeller
| --link SECONDS,BYTES/S[,SECONDS]: latency, bandwidth and overhead of messages between all ranks
--base GRAPH: the graph of one rank, for speedup, efficiency and their kin
--smpi DIR: write a time-independent trace and platform for SimGrid
--goal FILE: write a schedule for LogGOPSim
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.options import declare

    declare(parser, OPTIONS)


def run(options: argparse.Namespace) -> int:
    from fembench.base.units import seconds
    from fembench.model.engine import simulate
    from fembench.model.graph import load_graph
    from fembench.model.planner import make_plan
    from fembench_studies.graphs.modeller import machine_for
    from fembench_studies.graphs.replays import write_goal, write_smpi
    from fembench_studies.graphs.speedup import against_one_rank

    graph = load_graph(options.graph)
    machine = machine_for(graph, options.machine, options.link)
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
