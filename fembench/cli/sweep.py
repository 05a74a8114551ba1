"""Run a campaign of many cases and report it.

Runs the cases in interleaved order, each as a separate MPI job, prints the tables and builds the report. You
can stop it at any time: the same command continues where it stopped. Runs whose mesh or problem file has
changed are repeated. All records of a results folder must come from the same hosts: other hosts are
refused. Without a file, it runs the default campaign, which is made for the hosts of the job: strong and
weak scaling from one core to all. On several hosts, it first finds the slow ones, as `fembench nodes` does,
and measures the network; if speeds differ, it adds runs with shares by speed and runs without the slow hosts.

`fembench sweep solution` measures whole solutions by multigrid instead: equations solved per second, set-up
included, strongly and weakly scaled.

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
  mesh = ["m1", "m3"]
  ranks = [1, "node", "all"]
  storage = ["csr", "bsr"]
"""

import argparse
import json


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import hosts_option, real

    parser.add_argument(
        "campaign",
        nargs="?",
        metavar="CAMPAIGN.toml",
        help="campaign file, or solution (default: the default campaign)",
    )
    parser.add_argument(
        "--results", metavar="DIR", help="folder for records and report (default: results/NAME)"
    )
    parser.add_argument(
        "--weights",
        metavar="FILE",
        help="shares for all cases with this number of ranks and without shares; without --machine, also the "
        'speeds for hosts = "fast"',
    )
    hosts_option(parser)
    parser.add_argument(
        "--machine",
        metavar="FILE",
        help='profile made by characterize, for hosts = "fast" and memory = "25%%" in the campaign',
    )
    parser.add_argument(
        "--minutes",
        type=real(0, 10_000, above=True),
        default=0.0,
        metavar="MINUTES",
        help="end after this time: cases are repeated as often as it allows, and the last ones of the "
        "campaign are left out if it is short (default: each run of the campaign once)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="list the runs, their hosts and how long they take, and stop"
    )
    parser.add_argument("--no-report", action="store_true", help="do not build the report")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(options: argparse.Namespace) -> int:
    from fembench.cli.shared import typed_command
    from fembench.cli.sweep_plan import as_text, as_tree
    from fembench.launch.launchers import SETTINGS
    from fembench.workflows.sweep import invalid, planned, swept
    from fembench.workflows.sweep_source import SweepAsked

    asked = SweepAsked(
        campaign=options.campaign,
        results=options.results,
        weights=options.weights,
        hostfile=options.hostfile,
        machine=options.machine or "",
        minutes=options.minutes,
        report=not options.no_report,
        command=typed_command(),
        **{name: getattr(options, name) for name in SETTINGS},
    )
    if options.dry_run:
        plan = planned(asked)
        print(json.dumps(as_tree(plan)) if options.json else as_text(plan))
        return 0
    with swept(asked) as sweep:
        _report(sweep, options)
    return 1 if sweep.failed or invalid(sweep.measured) else 0


def _report(sweep, options: argparse.Namespace) -> None:
    """Print the tables, then build the page, whose packages are optional."""
    from fembench.base.progress import working
    from fembench.records.nodes import FOLDER, nodes_of_campaign
    from fembench.records.store import failures
    from fembench.report.results import results
    from fembench.report.slow_hosts import host_advice
    from fembench.report.table import to_json
    from fembench.report.tables import every_table, terminal
    from fembench.weights.host_speed import host_speeds
    from fembench.weights.stale import disturbance
    from fembench.workflows.sweep import invalid

    records, folder, left_out = sweep.measured, sweep.folder.path, sweep.left_out
    nodes = nodes_of_campaign(folder)
    speeds = host_speeds(nodes, records)
    advice = host_advice(results(records), speeds) if records else None
    tree: dict[str, object] = {"records": str(folder / "runs"), "invalid": invalid(records)}
    disturbed = disturbance([record.environment for record in records], "times")
    tree |= {"disturbed": disturbed}
    tree |= {"left_out": left_out} if options.minutes else {}
    tree |= {"slow_hosts": {"do": advice.do, "why": advice.why}} if advice else {}
    if options.json:
        made = every_table(records, list(failures(folder)), nodes=nodes)
        tree["tables"] = {table.name: to_json(table) for table in made}
    else:
        print(f"{disturbed}\n\n" if disturbed else "", end="")
        print(terminal(records, list(failures(folder)), nodes=nodes))
        if advice:
            print(f"slow hosts: {advice.do} ({advice.why})")
        if advice and nodes and set(advice.hosts) == {host.name for host in speeds.faulty}:
            without = f"fembench nodes {folder / FOLDER} --without good, then --hostfile good"
            print(f"to run without them: {without} and another --results")
        print(f"records: {folder / 'runs'}")
    if not options.no_report:
        from fembench.report.page import build

        with working("sweep: building the report"):
            tree["report"] = str(build(folder))
        if not options.json:
            print(f"report:  {tree['report']}")
    if options.json:
        print(json.dumps(tree))
    else:
        print("".join(f"left out (no time): {name}\n" for name in left_out), end="")
        print("".join(f"INVALID: {id}\n" for id in invalid(records)), end="")
