"""Schedule a task graph of your own on unequal hosts.

The graph is a JSON or DOT file: tasks with seconds (on a host of speed 1) or operations, edges with bytes.
  {"tasks": [{"name": "a", "seconds": 1.5}, {"name": "b", "operations": 2e9}],
   "edges": [{"from": "a", "to": "b", "bytes": 65536}]}
  digraph { a [seconds=1.5]; b [operations=2e9]; a -> b [bytes=65536]; }

Prints the makespan of every method, and a time line of the shortest schedule. All schedules are
executed under the same model, HLogP: overheads keep processors busy, latencies do not.
Methods: heft (HLogP), latency-heft, insertion-heft, cpop, turn (round robin), fastest (all on one host),
portfolio (the best of these, improved), optimum (every schedule of a few tasks).

Examples:
  fembench study schedule graph.json --machine machine.json     # ranks and network of characterize --network
  fembench study schedule graph.dot --hosts a:2,b:1:1:0.5 --link 50e-6,118e6
  fembench study schedule graph.dot --hosts a:1,b:1 --method heft,cpop -o schedules.csv
"""

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.options import real

    parser.add_argument("graph", metavar="GRAPH", help="task graph: a .json, .dot or .gv file")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--machine", default="", metavar="FILE", help="machine profile from fembench characterize --network"
    )
    where.add_argument(
        "--hosts", default="", metavar="NAME:SLOTS[:CORES[:SPEED]],…", help="hosts; every slot executes tasks"
    )
    parser.add_argument(
        "--link", default="50e-6,118e6", metavar="S,B/S", help="network between hosts (default: %(default)s)"
    )
    parser.add_argument(
        "--inside", default="1e-6,5e9", metavar="S,B/S", help="messages inside a host (default: %(default)s)"
    )
    parser.add_argument(
        "--overhead",
        type=real(0),
        default=1e-6,
        metavar="SECONDS",
        help="with --hosts: time that a message occupies its sender, and its receiver (default: %(default)s)",
    )
    parser.add_argument(
        "--rate",
        type=real(0, above=True),
        default=1e9,
        metavar="N",
        help="operations per second on a host of speed 1 (default: %(default)g)",
    )
    parser.add_argument("--method", default="", metavar="NAME,…", help="only these methods (default: all)")
    parser.add_argument(
        "-o", "--output", default="", metavar="FILE", help="write every task of every schedule (CSV)"
    )
    parser.add_argument("--json", action="store_true", help="print the schedules as JSON")


def run(options: argparse.Namespace) -> int:
    import json

    from fembench.base.files import write_atomic
    from fembench.records.hlogp import parse_link
    from fembench.records.profile import load_profile
    from fembench.workflows.place import hosts_of
    from fembench_studies.scheduling import methods_side_by_side as side
    from fembench_studies.scheduling.graph_files import read_graph
    from fembench_studies.scheduling.hosts import given_hosts, ranks_of

    made = read_graph(options.graph, options.rate)
    if options.machine:
        platform = ranks_of(load_profile(options.machine), options.machine)
    else:
        links = parse_link(options.link)[:2], parse_link(options.inside)[:2]
        platform = given_hosts(hosts_of(options.hosts), *links, options.overhead)
    found = side.schedules(made, platform, side.chosen_methods(options.method))
    if options.output:
        write_atomic(options.output, side.as_csv(found))
    if options.json:
        print(json.dumps(side.as_tree(found, made, platform), indent=1))
    else:
        print(side.as_text(found, made, platform))
        print(f"schedules: {options.output}" if options.output else "", end="\n" if options.output else "")
    return 0
