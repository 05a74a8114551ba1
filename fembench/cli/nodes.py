"""Find the slow node.

Measures all nodes of the job at the same time, in one launch: the speed of each core
by itself, of all cores together, and the memory bandwidth, in several rounds. Where
the system shows them, it also reads clock rates, the CPU time taken by other
processes, by the hypervisor or by a quota, and thermal throttling. Each node is
compared with those of its kind. If some are slow, a second launch measures them alone.
500 nodes take two launches at most.

Prints which node is slow, what is slow on it, and what one loses by keeping it.
--without writes a host file of the other nodes, for --hostfile of any verb. With a
RECORD, the samples of an earlier measurement are analysed again. A node is a host, as
batch systems call it. The exit status is 1 if a node is slow.

Examples:
  fembench nodes                                   # inside salloc or sbatch: all nodes of the job
  fembench nodes --hostfile hosts --without good
  fembench run m3 --ranks 64 --hostfile good       # on the nodes that are not slow
  fembench nodes results/nodes --json              # the newest record, analysed again
  fembench nodes --emulate 1,1,1,1,1,0.85,1:0.7,1:1:0.3   # SYNTHETIC nodes, to try it out
"""

import argparse
from pathlib import Path

from fembench.base.config import json_text
from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.cli.options import call, typed_command, whole
from fembench.cli.shared import ALL, LAUNCHER, say

OPTIONS = f"""
record [RECORD]: record of this verb, or folder whose newest record is analysed again
    (default: measure)
--hostfile FILE: a host file of any launcher (default: the batch system's allocation, or
    this machine)
{LAUNCHER}--ranks-per-node N: cores to measure on each node (default: one per slot)
--rounds N: samples of each quantity, 6 to 1000 (default: 8)
--results DIR: folder for records; all nodes must see it (default: results/nodes)
--without FILE: write a host file without the slow nodes
{ALL}--json: print the findings as JSON instead of tables

[synthetic]
--emulate NODES: measure emulated nodes on this machine, SPEED[:MEMORY[:LOAD]] each:
    speed of its cores and of its memory, fraction of the time that another load takes
"""
KINDS = {"rounds": whole(6, 1000)}


def run(options: argparse.Namespace) -> int:
    from fembench.workflows.nodes import NodesAsked, analysed, measured_in, writable_file, write_without

    if options.without and options.emulate:
        raise InputError("--without: emulated nodes are no hosts; expected a measurement of real ones")
    if options.without:
        writable_file(Path(options.without))
    if options.record:
        _check_not_measuring(options)
        found = analysed(options.record)
    else:
        rounds = options.rounds or NodesAsked.rounds
        given = {"per_node": options.ranks_per_node, "rounds": rounds, "command": typed_command()}
        asked = call(NodesAsked, options, **given)
        found = analysed(*measured_in(Path(options.results or "results/nodes"), asked))
    kept = write_without(found, options.without) if options.without else 0
    if options.json:
        print(json_text(found.verdicts))
    else:
        say(found.conclusions())
        print(found.as_text(options.all))
        if found.path:
            print(f"record: {found.path}")
        if options.without:
            print(f"{options.without}: {plural(kept, 'node')}; pass it to any verb with --hostfile")
    return int(bool(found.slow))


def _check_not_measuring(options: argparse.Namespace) -> None:
    """Raises InputError if options of a measurement come with a record."""
    measuring = ("hostfile", "ranks_per_node", "rounds", "results", "emulate")
    for name in (*measuring, "launcher", "launcher_options", "map_by"):
        if getattr(options, name):
            option = name.replace("_", "-")
            raise InputError(f"--{option} with the record {options.record}: expected one of them")
