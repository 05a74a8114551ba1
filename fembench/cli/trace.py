"""Extract the execution graph of a run or of a program.

The graph contains what each rank computed, which messages it sent and what it
waited for. It comes from a record with traced iterations or, with --binary, from
the executable of an MPI program: its ranks run here without MPI, one at a time,
and what they compute is timed. With --link, the time of the program is predicted,
with an interval; tables show who communicates and, with --count, how often loops
iterate and what functions cost.

Examples:
  fembench trace results/single/runs/m3-sym-none-p2-*-r1.json -o graph.json
  fembench trace --binary ./program --ranks 4 --args 1000 --link 1e-6,5e9
  fembench trace --binary ./program --ranks 4 --args 20 --count counts.json
"""

import argparse

from fembench.base.config import json_text
from fembench.base.errors import InputError
from fembench.base.plugins import STUDIES, needed, plugin
from fembench.cli.options import declare

OPTIONS = """
source [RECORD]: record of a run, or an execution graph
-o, --output FILE: write the graph (JSON)
--ranks N,…: with --binary: number of ranks
--json: print JSON instead of tables
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    declare(parser, OPTIONS)
    extension = plugin("options", "trace")
    if extension:
        extension.binary_options(parser)
    else:
        declare(parser, f"--binary FILE: executable that uses MPI: needs {STUDIES}")


def run(options: argparse.Namespace) -> int:
    from fembench.workflows import simulate

    if bool(options.source) == bool(options.binary):
        raise InputError("expected a record, a graph or --binary FILE, and only one of them")
    binary = needed("options", "trace", "--binary") if options.binary else None
    if binary and options.blocks:
        return int(binary.print_blocks(options))
    found = binary.expected(options) if binary else None
    graph = found.graph(options.binary) if found else simulate.graph_in(options.source)
    if options.output:
        simulate.save_graph(graph, options.output)
    if binary:
        print(binary.report(options, found))
    else:
        print(json_text(simulate.summary(graph)) if options.json else simulate.as_text(graph))
    if options.output and not options.json:
        print(f"graph: {options.output}; next: fembench simulate {options.output}")
    return 0
