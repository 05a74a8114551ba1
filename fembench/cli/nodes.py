"""Find the slow node.

Measures all nodes of the job at the same time, in one launch: the speed of each core by itself, of all cores
together, and the memory bandwidth, in several rounds. Where the system shows them, it also reads clock rates,
the CPU time taken by other processes, by the hypervisor or by a quota, and thermal throttling. Each node is
compared with those of its kind. If some are slow, a second launch measures them alone. 500 nodes take two
launches at most.

Prints which node is slow, what is slow on it, and what one loses by keeping it. --without writes a host file
of the other nodes, for --hostfile of any verb. With a RECORD, the samples of an earlier measurement are
analysed again. A node is a host, as batch systems call it. The exit status is 1 if a node is slow.

Examples:
  fembench nodes                                   # inside salloc or sbatch: all nodes of the job
  fembench nodes --hostfile hosts --without good   # then: fembench run m3 --ranks 64 --hostfile good
  fembench nodes results/nodes --json              # the newest record, analysed again
  fembench nodes --emulate 1,1,1,1,1,0.85,1:0.7,1:1:0.3   # SYNTHETIC nodes, to try it out
"""

import argparse
from pathlib import Path
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import launcher_options, whole

    parser.add_argument(
        "record",
        nargs="?",
        default="",
        metavar="RECORD",
        help="record of this verb, or folder whose newest record is analysed again (default: measure)",
    )
    parser.add_argument(
        "--hostfile",
        default="",
        metavar="FILE",
        help="a host file of any launcher (default: the batch system's allocation, or this machine)",
    )
    launcher_options(parser)
    parser.add_argument(
        "--ranks-per-node",
        type=whole(1),
        default=0,
        metavar="N",
        help="cores to measure on each node (default: one per slot)",
    )
    parser.add_argument(
        "--rounds", type=whole(6, 1000), default=0, metavar="N", help="samples of each quantity (default: 8)"
    )
    parser.add_argument(
        "--results",
        default="",
        metavar="DIR",
        help="folder for records; all nodes must see it (default: results/nodes)",
    )
    parser.add_argument("--without", metavar="FILE", help="write a host file without the slow nodes")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON instead of tables")

    synthetic = parser.add_argument_group("synthetic")
    synthetic.add_argument(
        "--emulate",
        default="",
        metavar="NODES",
        help="measure emulated nodes on this machine, SPEED[:MEMORY[:LOAD]] each: speed of its cores and "
        "of its memory, fraction of the time that another load takes",
    )


def run(options: argparse.Namespace) -> int:
    import msgspec

    from fembench.base.errors import InputError
    from fembench.base.files import write_atomic
    from fembench.launch.hosts import hostfile_text
    from fembench.records.nodes import load_nodes
    from fembench.report.node_tables import as_text
    from fembench.weights.slow_nodes import slow_nodes
    from fembench.workflows.nodes import measured_in

    emulated = InputError("--without: emulated nodes are no hosts; expected a measurement of real ones")
    if options.without and options.emulate:
        raise emulated
    if options.record:
        _check_not_measuring(options)
        record, path = load_nodes(options.record), ""
    else:
        record, path = measured_in(Path(options.results or "results/nodes"), _asked(options))
    if options.without and record.first.environment.synthetic:
        raise emulated
    found = slow_nodes(record)
    slow = {node.name for node in found.named("slow")}
    if options.without:
        kept = [(node.listed, node.slots) for node in record.first.nodes if node.name not in slow]
        if not kept:
            raise InputError(f"--without {options.without}: every node is slow; no host file is written")
        write_atomic(options.without, hostfile_text(kept))
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
        return int(bool(slow))
    print(as_text(record, found))
    for line in _files(options, path, len(record.first.nodes) - len(slow)):
        print(line)
    return int(bool(slow))


def _check_not_measuring(options: argparse.Namespace) -> None:
    """Raises InputError if options of a measurement come with a record."""
    from fembench.base.errors import InputError

    measuring = ("hostfile", "ranks_per_node", "rounds", "results", "emulate")
    for name in (*measuring, "launcher", "launcher_options", "map_by"):
        if getattr(options, name):
            option = name.replace("_", "-")
            raise InputError(f"--{option} with the record {options.record}: expected one of them")


def _asked(options: argparse.Namespace) -> Any:
    from fembench.characterize.node_launches import NodesAsked
    from fembench.cli.shared import typed_command

    return NodesAsked(
        hostfile=options.hostfile,
        per_node=options.ranks_per_node,
        rounds=options.rounds or NodesAsked.rounds,
        emulate=options.emulate,
        command=typed_command(),
    )


def _files(options: argparse.Namespace, path: str, kept: int) -> list[str]:
    """Where the results are, and what to do next."""
    lines = [f"record: {path}"] if path else []
    if options.without:
        from fembench.base.units import plural

        lines.append(f"{options.without}: {plural(kept, 'node')}; pass it to any verb with --hostfile")
    return lines
