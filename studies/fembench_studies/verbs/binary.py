"""The options of fembench trace --binary, and what it prints."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

TOP = "\n\n"


def binary_options(parser: argparse.ArgumentParser) -> None:
    """What is known about a program, in named groups."""
    from fembench.cli.options import real, whole

    parser.add_argument(
        "--level",
        type=whole(0, 3),
        default=0,
        metavar="N",
        help="reduce the graph, or the blocks of --blocks, by this level, 0 to 3 (default: 0)",
    )
    binary = parser.add_argument_group("from a program")
    binary.add_argument("--binary", metavar="FILE", help="x86 executable that uses MPI (needs objdump)")
    binary.add_argument("--args", default="", metavar="WORDS", help="the arguments of the program, in quotes")
    binary.add_argument("--function", default="main", metavar="NAME", help="function to start from")
    binary.add_argument(
        "--link",
        default="",
        metavar="SECONDS,BYTES/S[,SECONDS]",
        help="latency, bandwidth and overhead of messages: predict the time of the run",
    )
    binary.add_argument("--messages", action="store_true", help="with --link: print the log of messages")
    binary.add_argument("--blocks", metavar="NAME", help="print the blocks of this function and stop")
    binary.add_argument(
        "--cores",
        type=whole(1),
        default=None,
        metavar="N",
        help="cores that the ranks of the predicted run share (default: those of this machine)",
    )
    binary.add_argument(
        "--static",
        action="store_true",
        help="do not rehearse the program: its time is a sum over instructions, often several times too long",
    )
    binary.add_argument(
        "--costs",
        metavar="FILE",
        help="costs of instructions; if the file does not exist, they are measured and written to it",
    )

    told = parser.add_argument_group("what the program does not fix")
    told.add_argument(
        "--calls",
        default="",
        metavar="NAME=SECONDS,…",
        help="with --static: costs of library calls, or a JSON file with them; a call without a cost is an "
        "error, unless it is a common one of the C library",
    )
    told.add_argument(
        "--profile", metavar="FILE", help="counts of loops and branches, from a run with --count"
    )
    told.add_argument(
        "--count",
        default="",
        metavar="COMMAND",
        help="run this command, which starts the program, count what the code does not fix, and write it to "
        "--profile; a small case is enough",
    )
    told.add_argument(
        "--loop",
        action="append",
        default=[],
        metavar="ADDRESS=MEAN,LIMIT",
        help="iterations of one loop; can be repeated",
    )
    told.add_argument(
        "--branch",
        action="append",
        default=[],
        metavar="ADDRESS=P",
        help="probability that one branch is taken (default: 0.5); can be repeated",
    )
    told.add_argument(
        "--loop-mean",
        type=real(0),
        default=None,
        metavar="N",
        help="mean number of iterations of every other loop whose count is unknown (default: the limit)",
    )
    told.add_argument(
        "--loop-limit",
        type=whole(1),
        default=None,
        metavar="N",
        help="maximum of the same (default: the mean)",
    )
    told.add_argument(
        "--bytes", type=whole(0), default=None, metavar="N", help="size of messages of unknown size"
    )
    told.add_argument(
        "--draws",
        type=whole(2),
        default=20,
        metavar="N",
        help="number of draws behind an interval (default: 20)",
    )
    told.add_argument(
        "--seed",
        type=whole(0),
        default=0,
        metavar="N",
        help="seed of the random numbers of loops and branches",
    )


def smaller(graph, options: argparse.Namespace):
    """The graph, reduced by the level asked for."""
    from fembench_studies.graphs.reduce import reduced

    return reduced(graph, options.level)


def ranks_of(options: argparse.Namespace) -> int:
    """The number of ranks. Raises InputError."""
    from fembench.errors import InputError

    if not re.fullmatch("[0-9]{1,9}", options.ranks) or int(options.ranks) < 1:
        raise InputError(f"--binary with --ranks '{options.ranks}': expected a number of ranks")
    return int(options.ranks)


def expected(options: argparse.Namespace):
    """The walks of all ranks, priced. Raises InputError."""
    from fembench.errors import InputError
    from fembench.host.host import usable_cores
    from fembench.records.hlogp import parse_link
    from fembench_studies.binaries.counting import count_run, save_profile, undecided
    from fembench_studies.binaries.expected import expect

    ranks = ranks_of(options)
    program = _program(options)
    if options.count:
        if not options.profile:
            raise InputError("--count without --profile; expected a file for the counts")
        branches = undecided(program, ranks, _given(options, program, counted=False))
        save_profile(count_run(Path(options.binary), branches, options.count), options.profile)
    binary = None if options.static else Path(options.binary)
    return expect(
        program,
        ranks,
        _given(options, program),
        binary=binary,
        link=parse_link(options.link, overhead=True) if options.link else None,
        cores=options.cores or usable_cores(),
        seed=options.seed,
        draws=options.draws,
    )


def _program(options: argparse.Namespace):
    """The executable, with the costs of instructions: from a file, or measured and written to it."""
    from fembench_studies.binaries.binary import load
    from fembench_studies.binaries.image import image_of
    from fembench_studies.binaries.instructions import load_costs, measure_costs, save_costs

    image_of(Path(options.binary))
    known = bool(options.costs) and Path(options.costs).exists()
    costs = load_costs(options.costs) if known else measure_costs()
    if options.costs and not known:
        save_costs(costs, options.costs)
    return load(Path(options.binary), costs, options.function)


def _given(options: argparse.Namespace, program, *, counted: bool = True):
    """What is stated or counted; what is stated wins."""
    import shlex

    from fembench_studies.binaries.counting import distributions, load_profile
    from fembench_studies.binaries.walk import Given, Loops

    each: dict[int, Loops] = {}
    branches: dict[int, float] = {}
    if options.profile and counted:
        each, branches = distributions(program, load_profile(options.profile))
    told = frozenset({*each, *branches})
    loops = {a: Loops(x[0], int(x[1])) for a, x in _pairs("--loop", options.loop, 2)}
    rates = {a: x[0] for a, x in _pairs("--branch", options.branch, 1)}
    mean, limit = options.loop_mean, options.loop_limit
    every = None
    if mean is not None or limit is not None:
        every = Loops(limit if mean is None else mean, limit or max(round(mean), 1))
    return Given(
        loops=every,
        each={**each, **loops},
        branches={**branches, **rates},
        calls=_calls(options.calls),
        m=options.bytes,
        arguments=tuple(shlex.split(options.args)),
        counted=told - {*loops, *rates},
    )


def _pairs(option: str, words: Sequence[str], numbers: int):
    """(address, numbers) of ADDRESS=NUMBER[,NUMBER]."""
    from fembench.errors import InputError

    for word in words:
        number = r"[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?"
        found = re.fullmatch(rf"(?:0x)?([0-9a-f]+)=({number}(?:,{number}){{{numbers - 1}}})", word)
        values = [float(x) for x in found[2].split(",")] if found else []
        if not found or (option == "--branch" and values[0] > 1) or (option == "--loop" and values[1] < 1):
            form = (
                "ADDRESS=MEAN,LIMIT with a limit of at least 1"
                if numbers > 1
                else "ADDRESS=P with P from 0 to 1"
            )
            raise InputError(f"{option} {word}: expected {form}")
        yield int(found[1], 16), values


def _calls(text: str) -> dict[str, float]:
    """name -> seconds of a table in the command line or in a file."""
    from fembench.base.config import read_json
    from fembench.errors import InputError

    if text.endswith(".json"):
        table = read_json(text, dict[str, float])
        wrong = [name for name, cost in table.items() if not 0 <= cost < float("inf")]
        if wrong:
            raise InputError(f"{text}: {wrong[0]} of {table[wrong[0]]} s; expected seconds of 0 or more")
        return table
    found = {}
    for word in filter(None, text.split(",")):
        name, _, cost = word.partition("=")
        if not re.fullmatch(r"\w+", name) or not re.fullmatch(r"[0-9.]+(e-?[0-9]+)?", cost):
            raise InputError(f"--calls {word}: expected NAME=SECONDS, such as malloc=1e-7")
        found[name] = float(cost)
    return found


def print_blocks(options: argparse.Namespace) -> int:
    """The blocks of one function, as a table, as JSON, or as a flow chart. Raises InputError."""
    from fembench.base.config import encode
    from fembench.base.files import write_atomic
    from fembench.errors import InputError
    from fembench_studies.binaries.block_reduce import reduce_blocks
    from fembench_studies.binaries.blocks import block_table, flow_chart

    functions = _program(options).functions
    if options.blocks not in functions:
        raise InputError(f"no function {options.blocks}; expected one of {', '.join(list(functions)[:20])}")
    function = functions[options.blocks]
    reduce_blocks(function, options.level)
    if options.dot:
        write_atomic(options.dot, flow_chart(function))
        print(f"flow chart: {options.dot}; next: dot -Tsvg {options.dot} -o {options.blocks}.svg")
        return 0
    vertices = list(function.vertices.values())
    print(encode(vertices).decode() if options.json else block_table(function))
    return 0


def report(options: argparse.Namespace, found) -> str:
    """What is printed about a program: the prediction, and the tables behind it."""
    from fembench.base.config import encode
    from fembench.errors import InputError
    from fembench_studies.binaries import expected_tables as tables
    from fembench_studies.binaries.expected import summary

    if options.messages and not options.link:
        raise InputError("--messages without --link; expected the network of the messages")
    if options.json:
        return encode(_tree(options, found)).decode()
    parts = {
        "": summary(found, options.binary),
        "Ranks": tables.rank_rows(found),
        **(_followed(found) if found.walks else {"Loops and functions": f"not followed: {found.unfollowed}"}),
        "Messages": tables.message_rows(found.simulated()) if options.messages else "",
    }
    return TOP.join(f"{title}{TOP if title else ''}{text}" for title, text in parts.items() if text)


def _followed(found) -> dict[str, str]:
    """What follows from the code."""
    from fembench_studies.binaries import expected_tables as tables

    return {
        "Communication points": tables.point_rows(found),
        "Loops": tables.loop_rows(found),
        "Drawn branches": tables.branch_rows(found),
        "Functions": tables.function_rows(found),
        "Library calls": tables.library_rows(found),
    }


def _tree(options: argparse.Namespace, found) -> dict[str, object]:
    """The prediction for programs."""
    from fembench_studies.binaries.expected_tables import flag

    interval = found.time
    walks = [walk for draw in found.walks for walk in draw]
    loops = {h: [w.loops[h] for w in walks if h in w.loops] for h in {h for w in walks for h in w.loops}}
    return {
        "source": options.binary,
        "ranks": found.ranks,
        "cores": found.cores,
        "seconds": interval.value,
        "low": interval.low,
        "high": interval.high,
        "drawn": found.drawn,
        "timed": found.timed,
        "computing": found.computing().mean(axis=0).tolist(),
        "messages": [sum(1 for _ in walk.messages) for walk in found.walks[0]] if found.walks else [],
        "loops": {f"{h:x}": flag(points) for h, points in sorted(loops.items())},
        "wide": found.wide(),
        "unfollowed": found.unfollowed,
    }
