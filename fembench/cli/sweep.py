"""Run a campaign of many cases and report it.

Runs the cases in interleaved order, each as a separate MPI job, prints the tables and
builds the report. You can stop it at any time: the same command continues where it
stopped. Runs whose mesh or problem file has changed are repeated. All records of a
results folder must come from the same hosts: other hosts are refused. Without a file,
it runs the default campaign, which is made for the hosts of the job: strong and weak
scaling from one core to all. On several hosts, it first finds the slow ones, as
`fembench nodes` does, and measures the network; if speeds differ, it adds runs with
shares by speed and runs without the slow hosts.

`fembench sweep solution` measures whole solutions by multigrid instead: equations
solved per second, set-up included, strongly and weakly scaled.

Examples:
  fembench sweep
  fembench sweep solution
  fembench sweep --minutes 10
  fembench sweep campaign.toml --dry-run
  fembench sweep campaign.toml --hostfile hosts --results results/cluster

A campaign file:
  name = "storages"
  repetitions = 3
  timeout = 300          # seconds per run
  [[cases]]              # the keys are the options of `fembench run`; lists are multiplied out
  mesh = ["m1", "m3"]    # without it: m1
  ranks = [1, "node", "all"]
  storage = ["csr", "bsr"]
"""

import argparse
import json

from fembench.base.progress import progress
from fembench.cli.options import call, real, typed_command
from fembench.cli.shared import ALL, HOSTS, say

OPTIONS = f"""
campaign [CAMPAIGN.toml]: campaign file, or solution (default: the default campaign)
--results DIR: folder for records and report (default: results/NAME)
--weights FILE: shares for all cases with this number of ranks and without shares;
    without --machine, also the speeds for hosts = "fast"
{HOSTS}--machine FILE: profile made by characterize, for hosts = "fast" and memory = "25%%" in the campaign
--minutes MINUTES = 0: end after this time: cases are repeated as often as it allows,
    and the last ones of the campaign are left out if it is short (default: each run of
    the campaign once)
--dry-run: list the runs, their hosts and how long they take, and stop
--no-report: do not build the report
{ALL}--json: print JSON instead of tables
"""
KINDS = {"minutes": real(0, 10_000, inner=True)}


def run(options: argparse.Namespace) -> int:
    from fembench.workflows import sweep as workflow
    from fembench.workflows.command import SETTINGS
    from fembench.workflows.sweep_plan import as_text, as_tree

    status = 0

    def planned(plan):
        print(json.dumps(as_tree(plan)) if options.json else as_text(plan))

    def ended(sweep):
        nonlocal status
        found = _report(sweep, options)
        status = int(bool(sweep.failed or found.invalid))

    settings = {name: getattr(options, name) for name in SETTINGS}
    given = {"report": not options.no_report, "settings": settings, "command": typed_command()}
    given |= {"campaign": options.campaign or None}  # without one, the default campaign
    given |= {"planned": planned} if options.dry_run else {"ended": ended}
    call(workflow.sweep, options, **given, tell=progress)
    return status


def _report(sweep, options: argparse.Namespace):
    """Print the tables, then build the page, whose packages are optional."""
    from fembench.report.table import to_json
    from fembench.report.tables import every_table, selected
    from fembench.workflows.sweep import build_page, findings_of

    found = findings_of(sweep)
    folder = sweep.folder.path
    left_out = sweep.left_out
    tables = every_table(sweep.measured, found.failures, nodes=found.nodes)
    advice = found.advice
    tree: dict[str, object] = {"records": str(folder / "runs"), "invalid": found.invalid}
    tree |= {"disturbed": found.disturbed, "conclusions": found.conclusions}
    tree |= {"left_out": left_out} if options.minutes else {}
    tree |= {"slow_hosts": {"do": advice.do, "why": advice.why}} if advice else {}
    if options.json:
        tree["tables"] = {table.name: to_json(table) for table in tables}
    else:
        say(found.conclusions)
        print(selected(tables, options.all))
        print(f"records: {folder / 'runs'}")
    if not options.no_report:
        tree["report"] = build_page(folder, found.conclusions)
        if not options.json:
            print(f"report: {tree['report']}")
    if options.json:
        print(json.dumps(tree))
    else:
        print("".join(f"left out (no time): {name}\n" for name in left_out), end="")
        print("".join(f"INVALID: {id}\n" for id in found.invalid), end="")
    return found
