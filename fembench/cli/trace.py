"""Extract the execution graph of a run or of a program.

The graph contains what each rank computed, which messages it sent and what it waited for. It comes from a
record with traced iterations or, with --binary, from the executable of an MPI program: its ranks run here
without MPI, one at a time, and what they compute is timed; with --static, it is only read. With --link, the
time of the program is predicted, with an interval; tables show who communicates, how often loops iterate, and
what functions cost. What the program does not fix can be stated or counted.

Examples:
  fembench trace results/single/runs/m3-*.json -o graph.json
  fembench trace graph.json --level 3 --show --ranks 0
  fembench trace graph.json --dot graph.dot && dot -Tsvg graph.dot -o graph.svg
  fembench trace --binary ./program --ranks 4 --args 1000 --link 1e-6,5e9
  fembench trace --binary ./program --ranks 4 --count "mpiexec -n 2 ./program" --profile counts.json
"""

import argparse
import re

from fembench.base.plugins import STUDIES, needed, plugin


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", nargs="?", metavar="RECORD", help="record of a run, or an execution graph")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the graph (JSON)")
    parser.add_argument(
        "--dot", metavar="FILE", help="write the graph, or the flow chart of --blocks, for Graphviz"
    )
    parser.add_argument("--show", action="store_true", help="print the events")
    parser.add_argument(
        "--ranks",
        default="",
        metavar="N,…",
        help="with --show: only these ranks; with --binary: number of ranks",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    extension = plugin("options", "trace")
    if extension:
        extension.binary_options(parser)
    else:
        parser.add_argument("--binary", metavar="FILE", help=f"executable that uses MPI: needs {STUDIES}")


def run(options: argparse.Namespace) -> int:
    from fembench.base.config import encode
    from fembench.base.errors import InputError
    from fembench.base.tables import table
    from fembench.base.units import plural
    from fembench.model.graph import count, length, save_graph
    from fembench.model.measures import residual_text
    from fembench.model.show import as_table, write_dot

    if bool(options.source) == bool(options.binary):
        raise InputError("expected a record, a graph or --binary FILE, and only one of them")
    binary = needed("options", "trace", "--binary") if options.binary else None
    if binary and options.blocks:
        return int(binary.print_blocks(options))
    found = binary.expected(options) if binary else None
    graph = found.graph(options.binary) if found else _graph(options)
    extension = plugin("options", "trace")
    graph = extension.smaller(graph, options) if extension else graph
    if options.output:
        save_graph(graph, options.output)
    if options.dot:
        write_dot(graph, options.dot)
    if options.show:
        words = options.ranks.split(",") if options.ranks and not options.binary else []
        chosen = list(dict.fromkeys(int(word) if re.fullmatch("[0-9]{1,9}", word) else -1 for word in words))
        if not all(0 <= rank < graph.ranks for rank in chosen):
            raise InputError(f"--ranks {options.ranks}: expected ranks of the graph, 0 to {graph.ranks - 1}")
        if options.json:
            events = {rank: graph.programs[rank] for rank in chosen or range(graph.ranks)}
            print(encode({"phases": graph.phases, "events": events}).decode())
        else:
            print(as_table(graph, chosen))
        return 0
    if binary:
        print(binary.report(options, found))
        if options.output and not options.json:
            print(f"\ngraph: {options.output}; next: fembench simulate {options.output}")
        return 0
    heads = ["rank", "events", "unrolled"]
    rows = [[r, count(p), length(p)] for r, p in enumerate(graph.programs)]
    if options.json:
        ranks = [dict(zip(heads, row)) for row in rows]
        found = {"source": graph.source, "note": graph.note, "residual": graph.residual}
        print(encode({**found, "ranks": ranks}).decode())
        return 0
    print(f"execution graph of {graph.source}, {plural(graph.ranks, 'rank')}\n")
    print(table(heads, rows))
    if graph.note:
        print(graph.note)
    if graph.residual:
        print(residual_text(graph))
    if options.output:
        print(f"graph: {options.output}; next: fembench simulate {options.output}")
    return 0


def _graph(options: argparse.Namespace):
    """The trace in a file, or that of the record in a file."""
    from fembench.base.config import read_json
    from fembench.model.from_record import graph_of_record
    from fembench.model.graph import load_graph
    from fembench.records.store import load

    if "programs" in read_json(options.source, dict):
        return load_graph(options.source)
    return graph_of_record(load(options.source))
