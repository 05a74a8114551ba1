"""Measure what one reading of each clock costs.

Calls each timer 100 times and prints the lowest, highest and mean cost, in ticks of the
processor's counter and in nanoseconds, and which clock a run would use.

Examples:
  fembench timers
  fembench timers --calls 10000 --json
"""

import argparse

from fembench.base.config import json_text
from fembench.cli.options import whole

OPTIONS = """
--calls N = 100: calls of each timer
--json: print JSON instead of tables
"""
KINDS = {"calls": whole(1, 1_000_000)}


def run(options: argparse.Namespace) -> int:
    from fembench.workflows.timers import as_text, as_tree, timed

    experiment, certificate, note = timed(options.calls)
    if options.json:
        print(json_text(as_tree(experiment, certificate)))
    else:
        print(as_text(experiment, certificate, note))
    return 0
