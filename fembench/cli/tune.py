"""Find the best shares for one case, and prove the gain.

Runs the case with equal shares, derives weights from the speed of each rank, and runs it with these
weights, in a few rounds. Then it alternates equal and weighted shares and gives a verdict: use these weights,
no detectable gain, not proven (fewer than six pairs), too short to tell (the mesh is too small), or leave a
host out. If the slowest host can save less than 30 % of the time, the other hosts are also timed without it.
If only some ranks compute on devices, both kinds are also timed alone; the verdict is use both, device alone
or CPU alone.
Every run does fixed work: 50 iterations per set, and ten sets or more, until CG has taken 2 s; --iterations,
--sets and --seconds change that.

Examples:
  fembench tune m --ranks 2
  fembench tune l --ranks 8 --hostfile hosts -o weights.json
  fembench tune m --ranks 2 --emulate 1,0.5                # SYNTHETIC: one rank at half speed, to try it out

Next: fembench run l --ranks 8 --hostfile hosts --weights weights.json
"""

import argparse

from fembench.base.config import json_text
from fembench.base.progress import progress
from fembench.cli.options import call, declare, typed_command
from fembench.cli.shared import ALL, HOSTS, case_options, fields_from, say

OPTIONS = f"""
-o, --output FILE: file for the weights (default: DIR/weights.json)
--results DIR: folder for records (default: results/tune-MESH)
--rounds N = 2: maximum number of rounds that derive weights
--pairs N = 6: pairs of equal and weighted runs (default: 6, the fewest that can prove a gain)
{HOSTS}--timeout SECONDS = 600: end a run after this time (default: 600)
{ALL}--json: print the proof as JSON instead of tables
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    declare(parser, OPTIONS)
    case_options(parser)


def run(options: argparse.Namespace) -> int:
    from fembench.workflows import tune as workflow

    given = fields_from(options) | {"path": options.output, "command": typed_command()}
    found = call(workflow.tune, options, **given, tell=progress)
    if not options.json:
        say(found.conclusions())
        print(found.as_text(options.all))
        print(f"\nweights: {found.where}\nrecords: {found.runs}")
        return 0
    print(json_text(found.as_tree()))
    if found.proof.disturbed:
        progress(f"tune: {found.proof.disturbed}\ntune: weights: {found.where}")
    return 0
