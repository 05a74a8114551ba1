"""Turn measurements into each rank's share of the mesh.

A rule says how: `time` uses the total time of runs; `rate` the speed in each phase, from runs or from a
machine profile; `comm` equalises finish times including communication, and needs --link or --machine;
`tasks` gives each host a whole number of equal tasks, from runs on each host alone.

Examples:
  fembench weights results/single/runs/m3-*.json -o weights.json
  fembench weights results/scaling --mesh m --ranks 2 -o weights.json
  fembench weights results/alone --rule tasks --ranks 8
  fembench weights machine.json --rule rate -o weights.json
  fembench weights results/scaling --rule comm --link 50e-6,125e6 --link slow=1e-3,1e6 --export metis
  fembench weights results/scaling --rule comm --machine machine.json
"""

import argparse
import sys

RULES = ("time", "rate", "comm", "tasks")
FORMATS = ("metis", "petsc", "scotch", "hostfile", "pyfr", "shares")


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import whole

    parser.add_argument(
        "records",
        nargs="+",
        metavar="RECORD",
        help="records, folders of records, a machine profile, or a weights file",
    )
    parser.add_argument(
        "--rule",
        choices=RULES,
        help="how shares follow from measurements (default: time; rate for a machine profile)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the weights (JSON)")
    parser.add_argument("--export", choices=FORMATS, help="print the shares in the format of another program")
    parser.add_argument("--json", action="store_true", help="print the weights as JSON instead of a table")

    chosen = parser.add_argument_group("which records")
    chosen.add_argument("--mesh", default="", metavar="MESH", help="only records of this mesh")
    chosen.add_argument(
        "--ranks",
        type=whole(0),
        default=0,
        metavar="N",
        help="only records with this number of ranks; with rule tasks, the total number of tasks",
    )

    messages = parser.add_argument_group("rule comm")
    messages.add_argument(
        "--link",
        action="append",
        default=[],
        metavar="[HOST=]SECONDS,BYTES/S",
        help="latency and bandwidth of messages between all hosts, or of one host; may be repeated",
    )
    messages.add_argument("--machine", metavar="FILE", help="machine profile with a network")

    profile = parser.add_argument_group("from a machine profile")
    profile.add_argument(
        "--storage", default="sym", metavar="STORAGE", help="storage whose product speed is used"
    )
    profile.add_argument(
        "--iterations", type=whole(0), default=100, metavar="N", help="CG iterations per assembly"
    )
    profile.add_argument(
        "--cells",
        type=whole(0),
        default=0,
        metavar="N",
        help="cells per rank (default: the largest measured number)",
    )


def run(options: argparse.Namespace) -> int:
    from fembench.base.config import json_text
    from fembench.base.progress import progress
    from fembench.records.weights import save_weights
    from fembench.report.weight_tables import as_table
    from fembench.weights.export import FORMATS as WRITERS
    from fembench.workflows.weights import WeightsAsked, derived

    weights = derived(
        WeightsAsked(
            sources=options.records,
            rule=options.rule or "",
            mesh=options.mesh,
            ranks=options.ranks,
            links=options.link,
            machine=options.machine or "",
            storage=options.storage,
            iterations=options.iterations,
            cells=options.cells,
        )
    )
    if options.output:
        save_weights(weights, options.output)
    if options.export:
        sys.stdout.write(WRITERS[options.export](weights))
        for note in (n for n in weights.notes if n.startswith(("DISTURBED", "PROVISIONAL"))):
            progress(f"note: {note}")
    elif options.json:
        print(json_text(weights))
    else:
        print(as_table(weights))
        if options.output:
            print(f"weights: {options.output}")
    return 0
