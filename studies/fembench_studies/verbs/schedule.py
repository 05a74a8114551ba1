"""Schedule a task graph of your own on unequal hosts.

The graph is a JSON file: tasks with seconds (on a host of speed 1), edges with bytes.
  {"tasks": [{"name": "a", "seconds": 1.5}, {"name": "b", "seconds": 2}],
   "edges": [{"from": "a", "to": "b", "bytes": 65536}]}

Prints the makespan of every method, and every task of the shortest schedule. All schedules are executed
under the same model, HLogP: overheads keep processors busy, latencies do not.
Methods: heft (HLogP), latency-heft, turn (round robin), fastest (all on one host).

Examples:
  fembench study schedule graph.json --machine machine.json     # ranks and network of characterize --network
  fembench study schedule graph.json --hosts a:2,b:1:1:0.5 --link 50e-6,118e6
  fembench study schedule graph.json --hosts a:1,b:1 --method heft,turn -o schedules.csv
"""

import argparse

OPTIONS = """
graph GRAPH: task graph: a .json file
| --machine FILE: machine profile from fembench characterize --network
| --hosts HOSTS: NAME:SLOTS[:CORES[:SPEED]],…; every slot executes tasks
--link S,B/S = 50e-6,118e6: network between hosts
--inside S,B/S = 1e-6,5e9: messages inside a host
--overhead SECONDS = 1e-6: with --hosts: time that a message occupies its sender, and its receiver
--method NAME,…: only these methods (default: all)
-o, --output FILE: write every task of every schedule (CSV)
--json: print the schedules as JSON
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.options import declare, real

    declare(parser, OPTIONS, overhead=real(0))


def run(options: argparse.Namespace) -> int:
    import json

    from fembench.base.files import write_atomic
    from fembench.errors import InputError
    from fembench.records.hlogp import parse_link
    from fembench.records.profile import load_profile
    from fembench.report.table import text, to_csv
    from fembench_studies.scheduling.graph_files import read_graph
    from fembench_studies.scheduling.hosts import given_hosts, hosts_of, ranks_of
    from fembench_studies.scheduling.side_by_side import makespans, schedules, tasks, tree_of

    made = read_graph(options.graph)
    if options.machine:
        platform = ranks_of(load_profile(options.machine), options.machine)
    elif options.hosts:
        links = parse_link(options.link)[:2], parse_link(options.inside)[:2]
        platform = given_hosts(hosts_of(options.hosts), *links, options.overhead)
    else:
        raise InputError("missing --machine or --hosts; see fembench study schedule --help")
    found = schedules(made, platform, options.method)
    if options.output:
        write_atomic(options.output, to_csv(tasks(found)))
    if options.json:
        print(json.dumps(tree_of(found, made, platform), indent=1))
    else:
        table = makespans(found, made)
        print(f"{table.title}\n\n{text(table)}\n\n{text(tasks(found[:1]))}")
        print(f"schedules: {options.output}" if options.output else "", end="\n" if options.output else "")
    return 0
