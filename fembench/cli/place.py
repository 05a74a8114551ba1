"""Choose which host computes which part of the mesh.

Finds the placement with the shortest predicted iteration and writes it as a file for
the launcher. The record of any run on this number of ranks says what each part computes
and with which parts it exchanges messages. The machine profile says how fast its hosts
and their network are. Greedy placements are improved by pairwise exchange; a simulated
iteration decides between them.

Examples:
  fembench place results/single/runs/m3-sym-none-p2-*-r1.json --machine machine.json
  fembench place record.json --machine machine.json --format slurm -o tasks.txt
"""

import argparse
import json

from fembench.base.files import write_atomic
from fembench.cli.options import call, listed
from fembench.workflows.command import LAUNCHER_FILES

OPTIONS = f"""
record RECORD: record of a run on this number of ranks
--machine FILE!: machine profile, which fembench characterize --network makes
--format FORMAT = rankfile: format of the file: {listed(LAUNCHER_FILES)}
-o, --output FILE: write the file for the launcher
--json: print the placement as JSON instead of tables
"""
KINDS = {"format": tuple(LAUNCHER_FILES)}


def run(options: argparse.Namespace) -> int:
    from fembench.workflows.place import placed

    found = call(placed, options)
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
    if options.output:
        print(f"\n{options.output}: {how}")
    else:
        print(f"\n{text}", end="")
    return 0
