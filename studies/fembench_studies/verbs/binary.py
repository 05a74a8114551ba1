"""The options of fembench trace --binary, and what it prints."""

import argparse
import re
import shlex
from pathlib import Path

from fembench.cli.options import declare, whole
from fembench.errors import InputError

TOP = "\n\n"
OPTIONS = """
[from a program]
--binary FILE: x86 executable that uses MPI (needs objdump)
--args WORDS: the arguments of the program, in quotes
--link LINK: latency, bandwidth and overhead of messages as SECONDS,BYTES/S[,SECONDS], or a machine profile
  with a network, as measured between ranks of a host: predict the time of the run
--messages: with --link: print the log of messages
--cores N = 0: cores that the ranks of the predicted run share (default: those of this machine)
--blocks NAME: print the blocks of this function and stop
--dot FILE: with --blocks: write the flow chart, for Graphviz
--level N = 0: with --blocks: reduce them by this level, 0 to 3 (default: 0)
--count FILE: count loops, branches and calls in one more rehearsal, which takes a few microseconds for each
  branch passed, and write the counts
--static: do not rehearse the program: a master and its slaves walk through its blocks, as in the source, and
  its time is a sum over instructions, often several times too long
--given FILE: with --static and --blocks: costs, loops and branches, as --count writes them
"""


def binary_options(parser: argparse.ArgumentParser) -> None:
    """What is known about a program, in a group."""
    declare(parser, OPTIONS, level=whole(0, 3), cores=whole(1))


def expected(options: argparse.Namespace):
    """The program rehearsed or, with --static, drawn. Raises InputError."""
    import msgspec

    from fembench.host.host import usable_cores
    from fembench_studies.binaries.counts import distributions
    from fembench_studies.binaries.expected import expect
    from fembench_studies.binaries.given import save_given
    from fembench_studies.binaries.links import link_of

    if not re.fullmatch("[0-9]{1,9}", options.ranks) or int(options.ranks) < 1:
        raise InputError(f"--binary with --ranks '{options.ranks}': expected a number of ranks")
    if options.level:
        raise InputError("--level without --blocks; expected a function whose blocks are reduced")
    if options.count and options.static:
        raise InputError("--count counts in a rehearsal; expected it without --static")
    if options.messages and not options.link:
        raise InputError("--messages without --link; expected the network of the messages")
    program, given = _program(options)
    found = expect(
        program,
        int(options.ranks),
        given,
        binary=None if options.static else Path(options.binary),
        arguments=shlex.split(options.args),
        counted=bool(options.count),
        link=link_of(options.link) if options.link else None,
        cores=options.cores or usable_cores(),
    )
    if options.count:
        loops, branches = distributions(found.counts)
        counts = {"loops": loops, "branches": branches, "bytes": found.bytes(), "program": program.digest}
        save_given(msgspec.structs.replace(given, **counts), options.count)
    return found


def _program(options: argparse.Namespace):
    """The executable, and what is stated about it. Raises InputError."""
    from fembench_studies.binaries.executable import load
    from fembench_studies.binaries.given import Given, load_given

    given = load_given(options.given) if options.given else Given()
    program = load(Path(options.binary), given.costs)
    if given.program not in ("", program.digest):
        raise InputError(f"{options.given}: counts of another executable; expected those of {options.binary}")
    return program, given


def print_blocks(options: argparse.Namespace) -> int:
    """The blocks of one function, as a table, as JSON, or as a
    flow chart. Raises InputError."""
    from fembench.base.config import encode
    from fembench.base.files import write_atomic
    from fembench_studies.binaries.block_reduce import reduce_blocks
    from fembench_studies.binaries.blocks import block_table, flow_chart

    functions = _program(options)[0].functions
    if options.blocks not in functions:
        raise InputError(f"no function {options.blocks}; expected one of {', '.join(list(functions)[:20])}")
    function = functions[options.blocks]
    reduce_blocks(function, options.level)
    if options.dot:
        write_atomic(options.dot, flow_chart(function))
        print(f"flow chart: {options.dot}; next: dot -Tsvg {options.dot} -o {options.blocks}.svg")
    else:
        print(encode(list(function.vertices.values())).decode() if options.json else block_table(function))
    return 0


def report(options: argparse.Namespace, found) -> str:
    """What is printed about a program: the prediction, and the tables behind it."""
    from fembench.base.config import encode
    from fembench_studies.binaries import expected_tables as tables
    from fembench_studies.binaries.expected import summary

    if options.json:
        return encode(_tree(options, found)).decode()
    parts = {
        "": summary(found, options.binary),
        "Ranks": tables.rank_rows(found),
        "Communication points": tables.point_rows(found),
    }
    if found.counts:
        parts |= {
            "Loops": tables.loop_rows(found),
            "Branches": tables.branch_rows(found),
            "Functions": tables.function_rows(found),
            "Not counted: what is reached through a pointer": tables.uncounted_rows(found),
        }
    if options.messages:
        parts["Messages"] = tables.message_rows(found.simulated())
    return TOP.join(f"{title}{TOP if title else ''}{text}" for title, text in parts.items() if text)


def _tree(options: argparse.Namespace, found) -> dict[str, object]:
    """The prediction for programs."""
    from fembench_studies.binaries.counts import distributions

    interval = found.time
    return {
        "source": options.binary,
        "ranks": found.ranks,
        "cores": found.cores,
        "seconds": interval.value,
        "low": interval.low,
        "high": interval.high,
        "drawn": found.drawn,
        "timed": bool(found.repetitions),
        "computing": found.computing().mean(axis=0).tolist(),
        "messages": found.events(),
        "loops": distributions(found.counts)[0],
        "wide": found.wide(),
    }
