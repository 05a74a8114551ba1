"""Choose which host computes which part of the mesh.

Finds the placement with the shortest predicted iteration and writes it as a file for the launcher. The record
of any run on this number of ranks says what each part computes and with which parts it exchanges messages.
Give the hosts with their slots, cores and relative speed, or a machine profile with measured speeds and
network. Greedy placements are improved by pairwise exchange; a simulated iteration decides between them.

Examples:
  fembench place results/single/runs/m3-*.json --machine machine.json
  fembench place results/single/runs/m3-*.json --hosts fast:4:2:1,slow:4:1:0.5
  fembench place record.json --hosts a:2:2,b:2:2 --link 50e-6,118e6 --format rankfile -o ranks.txt
  fembench place record.json --hosts a:2:2,b:2:2 --format slurm -o tasks.txt
"""

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("record", metavar="RECORD", help="record of a run on this number of ranks")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--machine", default="", metavar="FILE", help="machine profile with a network")
    where.add_argument(
        "--hosts",
        default="",
        metavar="HOSTS",
        help="NAME:SLOTS[:CORES[:SPEED]],…; speed 1 is that of the hosts of the record",
    )
    parser.add_argument(
        "--link", default="50e-6,118e6", metavar="SECONDS,BYTES/S", help="network between hosts"
    )
    parser.add_argument(
        "--inside", default="1e-6,5e9", metavar="SECONDS,BYTES/S", help="messages inside a host"
    )
    parser.add_argument(
        "--format",
        choices=("rankfile", "hostfile", "mpich", "slurm"),
        default="rankfile",
        help="format of the file for the launcher",
    )
    parser.add_argument("-o", "--output", default="", metavar="FILE", help="write the file for the launcher")
    parser.add_argument("--json", action="store_true", help="print the placement as JSON instead of tables")


def run(options: argparse.Namespace) -> int:
    import json

    from fembench.base.files import write_atomic
    from fembench.workflows.place import placed

    found = placed(
        options.record,
        machine=options.machine,
        hosts=options.hosts,
        link=options.link,
        inside=options.inside,
    )
    text, how = found.file(options.format, options.output)
    if options.output:
        write_atomic(options.output, text)
    if options.json:
        tree = {"hosts": found.names, "iteration_seconds": found.best.seconds}
        print(json.dumps(tree | ({"provisional": found.warning} if found.warning else {})))
        return 0
    if found.warning:
        print(f"{found.warning}\n")
    print(found.text)
    print(f"\n{options.output}: {how}" if options.output else f"\n{text}", end="\n" if options.output else "")
    return 0
