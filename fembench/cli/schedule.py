"""Schedule a task graph of yours on unequal hosts: HEFT, CPOP and others, with makespans and a time line.

The graph is a JSON or DOT file: tasks with seconds (on a host of speed 1) or operations, edges with bytes.
  {"tasks": [{"name": "a", "seconds": 1.5}, {"name": "b", "operations": 2e9}],
   "edges": [{"from": "a", "to": "b", "bytes": 65536}]}
  digraph { a [seconds=1.5]; b [operations=2e9]; a -> b [bytes=65536]; }
All schedules are executed alike by HLogP: overheads keep processors, latencies do not. Methods: heft (HLogP),
latency-heft, insertion-heft, cpop, turn (round robin), fastest (all on the fastest host), portfolio (the best
of these, improved), optimum (all schedules tried, of a few tasks). Examples:
  fembench schedule graph.json --machine machine.json              ranks and network of characterize --network
  fembench schedule graph.dot --hosts a:2,b:1:1:0.5 --link 50e-6,118e6
  fembench schedule graph.dot --hosts a:1,b:1 --method heft,cpop -o schedules.csv
"""

import argparse

from fembench.cli.place import hosts_of, pair_of
from fembench.cli.shared import real


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("graph", metavar="GRAPH", help="a file ending in .json, .dot or .gv")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--machine", default="", metavar="FILE", help="profile of fembench characterize --network"
    )
    where.add_argument(
        "--hosts", default="", metavar="NAME:SLOTS[:CORES[:SPEED]],…", help="each slot takes tasks"
    )
    parser.add_argument(
        "--link", default="50e-6,118e6", metavar="S,B/S", help="between hosts (default: %(default)s)"
    )
    parser.add_argument(
        "--inside", default="1e-6,5e9", metavar="S,B/S", help="inside a host (default: %(default)s)"
    )
    parser.add_argument(
        "--overhead",
        type=real(0),
        default=1e-6,
        metavar="SECONDS",
        help="--hosts: that a message keeps its sender and its receiver, each (default: %(default)s)",
    )
    parser.add_argument(
        "--rate",
        type=real(0, above=True),
        default=1e9,
        metavar="N",
        help="operations a second on a host of speed 1 (default: %(default)g)",
    )
    parser.add_argument("--method", default="", metavar="NAME,…", help="these alone (default: all)")
    parser.add_argument(
        "-o", "--output", default="", metavar="FILE", help="every task of every schedule, CSV"
    )
    parser.add_argument("--json", action="store_true", help="print the schedules as JSON")


def run(options: argparse.Namespace) -> int:
    import json

    from fembench.base.files import write_atomic
    from fembench.records.profile import load_profile
    from fembench.studies.scheduling.graph_files import read_graph
    from fembench.studies.scheduling.hosts import given_hosts, ranks_of
    from fembench.studies.scheduling.schedulers import METHODS, usable

    made = read_graph(options.graph, options.rate)
    if options.machine:
        platform = ranks_of(load_profile(options.machine), options.machine)
    else:
        links = pair_of(options.link), pair_of(options.inside)
        platform = given_hosts(hosts_of(options.hosts), *links, options.overhead)
    names = _methods(options.method, list(METHODS)) or usable(made.graph, platform)
    rows = [_row(name, METHODS[name](made.graph, platform), made, platform) for name in names]
    if options.output:
        write_atomic(options.output, _csv(rows))
    if options.json:
        print(
            json.dumps({"graph": made.graph.name, "hosts": list(platform.names), "schedules": rows}, indent=1)
        )
    else:
        print(_text(rows, made, platform))
        print(f"schedules: {options.output}" if options.output else "", end="\n" if options.output else "")
    return 0


def _methods(text: str, known: list[str]) -> list[str]:
    from fembench.base.errors import InputError

    asked = [word.strip() for word in text.split(",") if word.strip()]
    for name in asked:
        if name not in known:
            raise InputError(f"--method {text}: unknown method '{name}'; expected some of {', '.join(known)}")
    return list(dict.fromkeys(asked))


def _row(name: str, schedule, made, platform) -> dict:
    """A schedule as JSON has it: what its method promises, its makespan by HLogP, and every task."""
    from fembench.studies.scheduling.timeline import timeline

    slots = timeline(made.graph, platform, schedule)
    return {
        "method": name,
        "found_by": schedule.method,
        "makespan": max(slot.end for slot in slots),
        "promised": schedule.expected,
        "hosts_used": schedule.hosts_used,
        "tasks": [
            {"task": made.names[s.task], "host": platform.names[s.host], "begin": s.work, "end": s.end}
            for s in slots
        ],
    }


def _csv(rows: list[dict]) -> str:
    import csv
    import io

    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["method", "task", "host", "begin_s", "end_s"])
    for row in rows:
        writer.writerows(
            [row["method"], t["task"], t["host"], repr(t["begin"]), repr(t["end"])] for t in row["tasks"]
        )
    return stream.getvalue()


def _text(rows: list[dict], made, platform) -> str:
    """Makespans, the shortest first, and the time line of that schedule."""
    from fembench.base.tables import table
    from fembench.base.units import seconds
    from fembench.studies.scheduling.timeline import picture

    ranked = sorted(rows, key=lambda row: row["makespan"])
    best = ranked[0]
    cells = [
        [
            row["method"],
            seconds(row["makespan"]),
            f"x {row['makespan'] / best['makespan']:.2f}" if best["makespan"] else None,
            seconds(row["promised"]),
            row["hosts_used"],
        ]
        for row in ranked
    ]
    heads = ["method", "makespan by HLogP", "over the best", "promised by the method", "processors"]
    head = f"{made.graph.name}: {made.graph.n_tasks} tasks, {len(made.graph.edges)} edges"
    line = picture(best["tasks"], platform.names)
    title = f"{best['method']} ({best['found_by']}), 0 to {seconds(best['makespan'])}"
    return f"{head}\n\n{table(heads, cells, align='lrrrr')}\n\n{title}\n{line}"
