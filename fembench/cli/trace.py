"""Extract the execution graph of a run or of a program.

The graph contains what each rank computed, which messages it sent and what it waited for. It comes from a
record with traced iterations or, with --binary, from the disassembly of an MPI program: its blocks, loops
and messages, with measured costs of instructions.

Examples:
  fembench trace results/single/runs/m3-*.json -o graph.json
  fembench trace graph.json --level 3 --show --ranks 0
  fembench trace graph.json --dot graph.dot && dot -Tsvg graph.dot -o graph.svg
  fembench trace --binary ./program --ranks 4 -o graph.json
"""

import argparse
import re
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import real, whole

    parser.add_argument("source", nargs="?", metavar="RECORD", help="record of a run, or an execution graph")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the graph (JSON)")
    parser.add_argument("--dot", metavar="FILE", help="write the graph for Graphviz")
    parser.add_argument(
        "--traced", action="store_true", help="only the traced iterations, exactly as recorded"
    )
    parser.add_argument(
        "--level",
        type=whole(0, 3),
        default=0,
        metavar="N",
        help="reduce the graph, and the blocks of --binary, by this level, 0 to 3 (default: 0)",
    )
    parser.add_argument("--show", action="store_true", help="print the events")
    parser.add_argument(
        "--ranks",
        default="",
        metavar="N,…",
        help="with --show: only these ranks; with --binary: number of ranks",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")

    binary = parser.add_argument_group("from a program")
    binary.add_argument("--binary", metavar="FILE", help="x86 executable that uses MPI (needs objdump)")
    binary.add_argument("--function", default="main", metavar="NAME", help="function to start from")
    binary.add_argument(
        "--loop-mean", type=real(0), default=10, metavar="N", help="mean number of turns of a loop"
    )
    binary.add_argument(
        "--loop-limit", type=whole(1), default=10, metavar="N", help="maximum number of turns of a loop"
    )
    binary.add_argument("--bytes", type=whole(0), default=8, metavar="N", help="message size")
    binary.add_argument("--blocks", metavar="NAME", help="print the blocks of this function and stop")
    binary.add_argument(
        "--costs",
        metavar="FILE",
        help="instruction costs; if the file does not exist, they are measured and written to it",
    )
    binary.add_argument(
        "--seed",
        type=whole(0),
        default=0,
        metavar="N",
        help="seed of the random numbers of loop turns and branches",
    )


def run(options: argparse.Namespace) -> int:
    from fembench.base.errors import InputError
    from fembench.base.tables import table
    from fembench.base.units import plural
    from fembench.model.graph import count, length, save_graph
    from fembench.model.measures import residual_text
    from fembench.model.reduce import reduced
    from fembench.model.show import as_table, write_dot

    if bool(options.source) == bool(options.binary):
        raise InputError("expected a record, a graph or --binary FILE, and only one of them")
    if options.binary and options.blocks:
        return _print_blocks(options)
    graph = reduced(_binary(options) if options.binary else _graph(options), options.level)
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
            print(_json({"phases": graph.phases, "events": events}))
        else:
            print(as_table(graph, chosen))
        return 0
    heads = ["rank", "events", "unrolled"]
    rows = [[r, count(p), length(p)] for r, p in enumerate(graph.programs)]
    if options.json:
        ranks = [dict(zip(heads, row)) for row in rows]
        print(_json({"source": graph.source, "note": graph.note, "residual": graph.residual, "ranks": ranks}))
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
    return graph_of_record(load(options.source), whole=not options.traced)


def _binary(options: argparse.Namespace):
    from fembench.base.errors import InputError
    from fembench.studies.binaries.binary import Loops, graph_of_program

    if not re.fullmatch("[0-9]{1,9}", options.ranks) or int(options.ranks) < 1:
        raise InputError(f"--binary with --ranks '{options.ranks}': expected a number of ranks")
    return graph_of_program(
        _program(options),
        int(options.ranks),
        Loops(options.loop_mean, options.loop_limit),
        options.bytes,
        options.seed,
        str(options.binary),
    )


def _program(options: argparse.Namespace):
    """The executable's functions, priced; unknown costs are measured."""
    from fembench.studies.binaries.binary import disassemble, program_of
    from fembench.studies.binaries.instructions import load_costs, measure_costs, save_costs

    text = disassemble(Path(options.binary))
    known = bool(options.costs) and Path(options.costs).exists()
    costs = load_costs(options.costs) if known else measure_costs()
    if options.costs and not known:
        save_costs(costs, options.costs)
    return program_of(text, costs, options.function, options.level)


def _print_blocks(options: argparse.Namespace) -> int:
    from fembench.base.errors import InputError
    from fembench.studies.binaries.blocks import block_table

    functions = _program(options).functions
    if options.blocks not in functions:
        raise InputError(f"no function {options.blocks}; expected one of {', '.join(list(functions)[:20])}")
    function = functions[options.blocks]
    print(_json(list(function.vertices.values())) if options.json else block_table(function))
    return 0


def _json(tree: object) -> str:
    import msgspec

    return msgspec.json.encode(tree).decode()
