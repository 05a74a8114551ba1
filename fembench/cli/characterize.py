"""Measure the speed of every rank, and the network.

Measures the kernels of fembench: assembly, the product in each storage, vector updates,
triad and read, with data in the second-level cache, in the third and in memory, and
with 1, 2, 4, … and all ranks of a host running. This takes two minutes, with the hosts
measured in parallel, or half a minute with --quick; with --network, three to four
minutes, or one to two. The result is a machine profile, which `weights`, `place`,
`predict` and `simulate` read.

With --device, ranks on devices are measured with their kernels, and all ranks also with
what copies interfaces between the memories of device and host.

With --network, it also measures the messages between each pair of hosts, a few seconds
per pair: overhead and latency by message size (HLogP), gaps, all-reduces, several pairs
at once, how far messages progress while ranks compute, how much waiting ranks slow down
others, and the slowness H of each rank (three kernels).

With --operations, it measures the operations of C instead: + - * / % and assignments of
int, long, float and double, accesses, casts, comparisons, random numbers, and messages
to rank 0. Each run appends its samples to a bounded history, and writes the intervals
that hold most of them. A run takes ten seconds.

Examples:
  fembench characterize --network -o machine.json
  fembench characterize --network --sizes 8,1K,64K,1M,16M --repetitions 50 --send send -o machine.json
  fembench characterize --hosts fast:4,slow:4 --network -o machine.json
  fembench characterize --add-to machine.json --pairs classes --sites 'a=n1,n2;b=n3,n4'
  fembench characterize --emulate 1,1,0.5,0.25 --dilate 4 --quick      # SYNTHETIC speeds, to try it out
  fembench lab run fembench characterize --network -o machine.json     # in a lab, on all its ranks
  fembench characterize --operations --idle --times 24 --every 3600 -o park.txt   # hourly, if hosts are idle

Next: fembench weights machine.json --rule rate -o weights.json
"""

import argparse

from fembench.base.config import json_text
from fembench.base.errors import InputError
from fembench.base.plugins import STUDIES, needed, plugin
from fembench.base.progress import progress
from fembench.cli.options import call, declare, real, typed_command
from fembench.cli.shared import LAUNCHER
from fembench.records.sites import METHODS, PAIRS, SENDS

OPTIONS = f"""
| --hosts HOSTS: hosts with their number of ranks, as in fast:4,slow:2
| --hostfile FILE: a host file of any launcher
{LAUNCHER}--ranks N: number of ranks (default: one per slot)
--device DEVICES = cpu: what the ranks compute on, as in gpu,15*cpu (default: cpu)
--quick: fewer and shorter measurements, and messages of up to 1 MiB
-o, --output FILE: write the machine profile (JSON)
--json: print the profile as JSON instead of tables

[network]
--network: also measure messages between the ranks
--add-to FILE: measure only the network, and add it to this profile of the same ranks (or to -o)
--pairs CHOICE: measure every ordered pair of hosts, or one pair within each site and
    one between each two sites (default: all, for up to 4 hosts)
--sites SITES: sites, as in a=n1,n2;b=n3 (default: by domain name)
--sizes BYTES,…: message sizes, as in 8,64K,4M (default: 8 to 4M, doubling; with --quick to 1M)
--repetitions N: round trips per size (default: as many as fit into 4 s per pair, or 1.2
    s with --quick)
--method CHOICE = both: trains: trains of messages, for L and g (Kielmann 2000); pingpong:
    ping-pongs, for Os, L and Or (Mendes 2004)
--send CHOICE = both: MPI call timed by --method pingpong; with both, the model uses MPI_Isend
"""
SYNTHETIC = """
[synthetic]
--emulate SPEEDS: speed of each rank, as in 1,1,0.5,0.25
--dilate FACTOR = 1: slow all ranks down by this factor, so that several can share a core
"""
OF_NETWORK = ("pairs", "sites", "sizes", "repetitions", "method", "send")


def arguments(parser: argparse.ArgumentParser) -> None:
    declare(parser, OPTIONS, pairs=PAIRS, method=tuple(METHODS), send=tuple(SENDS))
    extension = plugin("options", "characterize")
    if extension:
        extension.operations_arguments(parser)
    else:
        declare(parser, f"--operations: single operations: needs {STUDIES}")
    declare(parser, SYNTHETIC, dilate=real(1))


def run(options: argparse.Namespace) -> int:
    from fembench.workflows import characterize as workflow

    for name in () if options.network or options.add_to else OF_NETWORK:
        if (given := getattr(options, name)) not in ("", 0, "both"):
            raise InputError(f"--{name} {given} without a network; expected --network or --add-to FILE")
    extension = plugin("options", "characterize")
    if extension:
        extension.check_operations(options)
        if options.operations:
            with workflow.hosts_of_job(options.output, options.hosts, options.hostfile) as (folder, hostfile):
                ranks = workflow.ranks_of_job(options.ranks, hostfile, options.emulate)
                return int(extension.run_operations(options, ranks, hostfile, folder))
    elif options.operations:
        needed("options", "characterize", "--operations")
    given = {"path": options.output, "command": typed_command(), "tell": progress}
    profile = call(workflow.machine, options, **given)
    if options.json:
        print(json_text(profile))
        return 0
    print(workflow.as_text(profile, network_alone=bool(options.add_to)))
    if output := options.output or options.add_to:
        print(f"profile: {output}; next: {_next(profile, output)}")
    return 0


def _next(profile, output: str) -> str:
    if profile.network is None:
        return f"fembench weights {output} --rule rate -o weights.json"
    return f"fembench predict m3 --machine {output} --ranks {len(profile.environment.rank_host)}"
