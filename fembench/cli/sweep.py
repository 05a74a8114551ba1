"""Run a campaign of many cases and report it.

Runs the cases in interleaved order, each as a separate MPI job, prints the tables and builds the report. You
can stop it at any time: the same command continues where it stopped. Runs whose mesh or problem file has
changed are repeated. All records of a results folder must come from the same hosts: other hosts are
refused. Without a file, it runs the default campaign, which is made for the hosts of the job: strong and
weak scaling from one core to all. On several hosts, it first finds the slow ones, as `fembench nodes` does,
and measures the network; if speeds differ, it adds runs with shares by speed and runs without the slow hosts.

Examples:
  fembench sweep
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
import time


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import hosts_option, real

    parser.add_argument(
        "campaign", nargs="?", metavar="CAMPAIGN.toml", help="campaign file (default: the default campaign)"
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
    from fembench.base.errors import RunFailedError
    from fembench.bench.campaign_hosts import campaign_hosts
    from fembench.cli.sweep_default import folder_of, measure_network, measure_nodes, source_of
    from fembench.cli.sweep_plan import refuse_early
    from fembench.cli.sweep_runs import Sweep, runs_of, time_left
    from fembench.launch.scratch import occupied

    begin = time.monotonic()
    there = campaign_hosts(options.hostfile, options.machine or "", options.weights or "")
    source = source_of(options.campaign, there, options.minutes, options.results)
    _say_settings(source, there, options)
    folder = folder_of(source, options.results)
    if options.dry_run:
        return _show_plan(source, folder, there, options, begin)
    if options.minutes:
        time_left(options, begin)
    with occupied(folder.runs):
        folder.hold(source.text, source.where, there, grown=source.made)
        _say_damaged(folder, ": moved to superseded")
        folder.set_damaged_aside()
        runs, kept = runs_of(source, folder, options)
        runs = list(dict.fromkeys([*kept, *runs]))
        refuse_early(runs, folder, options.hostfile)
        _say_changes(runs, folder)
        if source.made:
            measure_nodes(there, folder, options.hostfile, options.minutes)
            if not options.machine:
                measure_network(there, folder, options.hostfile, options.minutes)
        sweep = Sweep.of(source, folder, there, options, begin)
        failed = sweep.execute()
        _report(sweep, options)
    if not sweep.measured and not failed:
        raise RunFailedError(f"--minutes {options.minutes:g}: no run ended in time; give more minutes")
    return 1 if failed or _invalid(sweep.measured) else 0


def _show_plan(source, folder, there, options: argparse.Namespace, begin: float) -> int:
    """Print what the sweep would do. Raises InputError for what it would refuse."""
    from fembench.cli.sweep_default import measured_first
    from fembench.cli.sweep_plan import as_text, as_tree, plan_of
    from fembench.cli.sweep_runs import Sweep

    folder.check(source.text, source.where, there, grown=source.made)
    _say_damaged(folder, "")
    minutes, machine = options.minutes, options.machine or ""
    first = measured_first(there, folder, minutes, machine) if source.made else {}
    sweep = Sweep.of(source, folder, there, options, begin - sum(first.values()))
    planned, file = sweep.order.planned(), options.hostfile
    plan = plan_of(source.campaign, planned, folder, there, sweep.left_out, hostfile=file, first=first)
    print(json.dumps(as_tree(plan)) if options.json else as_text(plan))
    return 0


def _say_settings(source, there, options: argparse.Namespace) -> None:
    """Set the launcher; say what has changed since the last release, and what is assumed.

    Raises InputError if no job can be started so.
    """
    from fembench.bench.campaign_file import outdated
    from fembench.cli.progress import progress
    from fembench.cli.shared import launch_settings
    from fembench.launch.job_line import check_settings
    from fembench.launch.launchers import SETTINGS

    for line in outdated(source.campaign):
        progress(f"{source.where}: {line}")
    launch_settings({name: getattr(options, name) or getattr(source.campaign, name) for name in SETTINGS})
    check_settings()
    _say_assumed(source.campaign, there)


def _invalid(records) -> list[str]:
    """The names of the records that are INVALID."""
    return [record.id for record in records if record.verdict.status == "INVALID"]


def _say_assumed(campaign, there) -> None:
    """A line on hosts whose memory is not known, if a mesh is sized by it."""
    from fembench.cli.progress import progress

    if there.assumed and any("memory" in table for table in campaign.cases):
        few = ", ".join(there.assumed[:3]) + (", …" if len(there.assumed) > 3 else "")
        progress(f"memory of {few}: not known, taken to be that of this host (--machine FILE would say)")


def _say_damaged(folder, where: str) -> None:
    from fembench.cli.progress import progress

    for path in folder.damaged():
        progress(f"{path} is damaged (not valid JSON){where}; its run is repeated")


def _say_changes(runs, folder) -> None:
    """A line for each file edited or deleted, and each default changed, since runs were recorded."""
    from collections import Counter

    from fembench.bench.inputs import gone
    from fembench.cli.progress import progress

    edited = Counter(name for item in runs if (name := folder.changed(item)))
    for name, count in edited.items():
        progress(f"{name} has changed: runs to repeat: {count} (old records: {folder.runs}/superseded)")
    kinds = Counter(item.case.stop.tolerance_kind for item in folder.of_other_default(runs))
    for kind, count in kinds.items():
        now = f"the default tolerance_kind is now '{kind}'"
        progress(f"{now}: runs to repeat: {count} (old records: {folder.runs})")
    kept = [item for item in runs if folder.record(item)]
    for name, count in Counter(name for item in kept for name in gone(item.case)).items():
        progress(f"{name} no longer exists: records kept unchecked: {count}")


def _report(sweep, options: argparse.Namespace) -> None:
    """Print the tables, then build the page, whose packages are optional."""
    from fembench.cli.progress import working
    from fembench.records.nodes import FOLDER, nodes_of_campaign
    from fembench.records.store import failures
    from fembench.report.results import results
    from fembench.report.slow_hosts import host_advice
    from fembench.report.table import to_json
    from fembench.report.tables import every_table, terminal
    from fembench.weights.disturbed import disturbance
    from fembench.weights.host_speed import host_speeds

    records, folder, left_out = sweep.measured, sweep.folder.path, sweep.left_out
    nodes = nodes_of_campaign(folder)
    advice = host_advice(results(records), host_speeds(nodes, records)) if records else None
    tree: dict[str, object] = {"records": str(folder / "runs"), "invalid": _invalid(records)}
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
        if advice and nodes:
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
        print("".join(f"INVALID: {id}\n" for id in _invalid(records)), end="")
