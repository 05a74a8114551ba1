"""Run a campaign of many cases and report it.

Runs the cases in interleaved order, each as a separate MPI job, prints the tables and builds the report. You
can stop it at any time: the same command continues where it stopped. Runs whose mesh or problem file has
changed are repeated. All records of a results folder must come from the same hosts: another host file is
refused. Without a file, it runs the default campaign.

Examples:
  fembench sweep
  fembench sweep campaign.toml --dry-run
  fembench sweep campaign.toml --hostfile hosts --results results/cluster

A campaign file:
  name = "scaling"
  repetitions = 3
  timeout = 300          # seconds per run
  [[cases]]              # the keys are the options of `fembench run`; lists are multiplied out
  mesh = ["m1", "m3"]
  ranks = [1, "node", "all"]
  storage = ["csr", "bsr"]
"""

import argparse
import json
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.shared import hosts_option

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
        "--dry-run", action="store_true", help="list the runs, their hosts and how long they take, and stop"
    )
    parser.add_argument("--no-report", action="store_true", help="do not build the report")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(options: argparse.Namespace) -> int:
    from fembench.bench.campaign import DEFAULT, Folder, read_campaign
    from fembench.bench.campaign_file import outdated
    from fembench.bench.campaign_hosts import campaign_hosts
    from fembench.cli.shared import launch_settings, progress
    from fembench.launch.launchers import SETTINGS
    from fembench.launch.scratch import occupied

    source = Path(options.campaign) if options.campaign else DEFAULT
    there = campaign_hosts(options.hostfile, options.machine or "", options.weights or "")
    campaign, runs = read_campaign(source, there)
    for line in outdated(campaign):
        progress(f"{source}: {line}")
    launch_settings({name: getattr(options, name) or getattr(campaign, name) for name in SETTINGS})
    _say_assumed(campaign, there)
    runs = _weighted(runs, options.weights)
    folder = Folder(Path(options.results or Path("results") / campaign.name))
    if options.dry_run:
        from fembench.cli.sweep_plan import as_text, as_tree, plan_of

        plan = plan_of(campaign, runs, folder, there)
        print(json.dumps(as_tree(plan)) if options.json else as_text(plan))
        return 0
    with occupied(folder.runs):
        folder.prepare(source, there)
        _say_damaged(folder)
        _refuse_other_hosts(runs, folder, options.hostfile)
        _say_changes(runs, folder)
        records, failed = _execute(campaign, runs, folder, options.hostfile)
        _report(records, folder.path, options)
    return 1 if failed or _invalid(records) else 0


def _invalid(records) -> list[str]:
    """The names of the records that are INVALID."""
    return [record.id for record in records if record.verdict.status == "INVALID"]


def _say_assumed(campaign, there) -> None:
    """A line on hosts whose memory is not known, if a mesh is sized by it."""
    from fembench.cli.progress import progress

    if there.assumed and any("memory" in table for table in campaign.cases):
        few = ", ".join(there.assumed[:3]) + (", …" if len(there.assumed) > 3 else "")
        progress(f"memory of {few}: not known, taken to be that of this host (--machine FILE would say)")


def _weighted(runs, path):
    """The runs, with shares where the weights fit. Raises InputError if they fit no run."""
    if not path:
        return runs
    from fembench.base.errors import InputError
    from fembench.base.units import plural
    from fembench.bench.campaign_file import CampaignRun, run_id
    from fembench.cli.shared import weighted
    from fembench.records.weights import load_weights

    ranks = len(load_weights(path).ranks)
    fits = [run.case.placement.ranks == ranks and not run.case.placement.shares for run in runs]
    if not any(fits):
        raise InputError(f"{path}: weights of {plural(ranks, 'rank')} fit no case of the campaign")
    cases = [weighted(run.case, path) if fit else run.case for run, fit in zip(runs, fits)]
    return [CampaignRun(run_id(case, run.repetition), case, run.repetition) for case, run in zip(cases, runs)]


def _say_damaged(folder) -> None:
    from fembench.cli.progress import progress

    for name in folder.set_damaged_aside():
        progress(
            f"{folder.runs / name} is damaged (not valid JSON): moved to superseded; its run is repeated"
        )


def _refuse_other_hosts(runs, folder, hostfile) -> None:
    """Raises InputError if records of the campaign were made with another host file."""
    from fembench.base.errors import InputError, shown

    others = folder.on_other_hosts(runs, hostfile)
    if others:
        asked = shown(others[0].environment.hosts_asked) or "none"
        raise InputError(
            f"{folder.runs}: records made with another host file ({asked}): {len(others)}; "
            "one folder takes records of the same hosts only: give another --results"
        )


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


def _execute(campaign, runs, folder, hostfile) -> tuple[list, int]:
    """Run everything, with a line per case; (the records, number of runs without one)."""
    from fembench.base.units import seconds
    from fembench.bench.campaign import Timekeeper, execute
    from fembench.cli.progress import progress, working
    from fembench.cli.shared import typed_command
    from fembench.report.run_line import summary_line

    to_do = sum(folder.record(run) is None for run in runs)
    if to_do < len(runs):
        progress(f"{len(runs) - to_do} of {len(runs)} runs already have a record")
    clock, failed, records = Timekeeper(to_do), 0, []
    made = execute(campaign, runs, folder, command=typed_command(), hostfile=hostfile)
    with working(f"sweep: run 1 of {len(runs)}") as now:
        for k, done in enumerate(made, 1):
            now.text = f"sweep: run {k + 1} of {len(runs)}"
            records += [done.record] if done.record else []
            if done.outcome is None:
                continue
            clock.one_more()
            left = f"{seconds(clock.left)} left" if clock.left else "done"
            failure = f"{done.run.id}: FAILED: {done.outcome.message}"
            progress(f"[{k}/{len(runs)}, {left}] {summary_line(done.record) if done.record else failure}")
            failed += done.record is None
    return records, failed


def _report(records, folder: Path, options: argparse.Namespace) -> None:
    """Print the tables, then build the page, whose packages are optional."""
    from fembench.cli.progress import working
    from fembench.records.store import failures
    from fembench.report.table import to_json
    from fembench.report.tables import every_table, terminal

    tree: dict[str, object] = {"records": str(folder / "runs"), "invalid": _invalid(records)}
    if options.json:
        made = every_table(records, list(failures(folder)))
        tree["tables"] = {table.name: to_json(table) for table in made}
    else:
        print(terminal(records, list(failures(folder))))
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
        print("".join(f"INVALID: {id}\n" for id in _invalid(records)), end="")
