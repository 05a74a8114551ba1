"""Run a campaign: a file, cases, or the default campaign for the hosts of the job."""

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from fembench.base.errors import RunFailedError
from fembench.base.progress import progress, working
from fembench.bench.campaign_file import Campaign, CampaignRun
from fembench.bench.campaign_folder import Folder
from fembench.bench.campaign_hosts import CampaignHosts, campaign_hosts
from fembench.bench.fastest import reasons
from fembench.bench.inputs import gone
from fembench.launch.launchers import SETTINGS, use_settings
from fembench.launch.line import check_settings
from fembench.launch.scratch import occupied
from fembench.records.nodes import FOLDER, NodesRecord, nodes_of_campaign
from fembench.records.record import Failure
from fembench.records.store import failures
from fembench.report.results import results
from fembench.report.slow_hosts import HostAdvice, host_advice
from fembench.weights.host_speed import host_speeds
from fembench.weights.stale import disturbance
from fembench.workflows.cases import warn_if_doubtful
from fembench.workflows.sweep_first import measure_network, measure_nodes, measured_first
from fembench.workflows.sweep_plan import SweepPlan, plan_of, refuse_early
from fembench.workflows.sweep_runs import Sweep, overrun, runs_of, time_left
from fembench.workflows.sweep_source import SweepAsked, SweepSource, folder_of, source_of


@contextlib.contextmanager
def swept(asked: SweepAsked) -> Iterator[Sweep]:
    """Run all, then give the sweep, its folder held. Raises InputError, RunFailedError."""
    begin = time.monotonic()
    source, there, folder = _prepared(asked)
    if asked.minutes:
        time_left(asked, begin)
    with occupied(folder.runs):
        folder.hold(source.text, source.where, there, grown=source.made)
        _say_damaged(folder, ": moved to superseded")
        folder.set_damaged_aside()
        runs, kept = runs_of(source, folder, asked)
        runs = list(dict.fromkeys([*kept, *runs]))
        refuse_early(runs, folder, asked.hostfile)
        _say_changes(runs, folder)
        _say_reasons(runs)
        warn_if_doubtful(asked.weights, (run.case for run in runs))
        if source.made:
            measure_nodes(there, folder, asked)
            if not asked.machine:
                measure_network(there, folder, asked)
        sweep = Sweep.of(source, folder, there, asked, begin)
        sweep.execute()
        yield sweep
    if line := overrun(asked.minutes, time.monotonic() - begin):
        progress(line)
    if not sweep.measured and not sweep.failed:
        raise RunFailedError(f"--minutes {asked.minutes:g}: no run ended in time; give more minutes")


def planned(asked: SweepAsked) -> SweepPlan:
    """What the sweep would do. Raises InputError for what it would refuse."""
    begin = time.monotonic()
    source, there, folder = _prepared(asked)
    folder.check(source.text, source.where, there, grown=source.made)
    _say_damaged(folder, "")
    first = measured_first(there, folder, asked.minutes, asked.machine) if source.made else {}
    sweep = Sweep.of(source, folder, there, asked, begin - sum(first.values()))
    runs, file = sweep.order.planned(), asked.hostfile
    _say_reasons(runs)
    warn_if_doubtful(asked.weights, (run.case for run in runs))
    return plan_of(source.campaign, runs, folder, there, sweep.left_out, hostfile=file, first=first)


class SweepFindings(NamedTuple):
    """What the runs of a sweep say."""

    failures: list[Failure]
    nodes: NodesRecord | None  # of the campaign
    invalid: list[str]  # names of INVALID records
    disturbed: str  # a line on other work that disturbed the times; "": none
    advice: HostAdvice | None  # whether to do without the slow hosts
    without: str  # how to run without them; "" unless they are those that the nodes show


def findings_of(sweep: Sweep) -> SweepFindings:
    """Validity, disturbances and slow hosts, of a sweep that has ended."""
    records, folder = sweep.measured, sweep.folder.path
    nodes = nodes_of_campaign(folder)
    speeds = host_speeds(nodes, records)
    advice = host_advice(results(records), speeds) if records else None
    faulty = advice and nodes and set(advice.hosts) == {host.name for host in speeds.faulty}
    without = f"fembench nodes {folder / FOLDER} --without good, then --hostfile good and another --results"
    return SweepFindings(
        list(failures(folder)),
        nodes,
        [record.id for record in records if record.verdict.status == "INVALID"],
        disturbance([record.environment for record in records], "times"),
        advice,
        without if faulty else "",
    )


def build_page(folder: Path) -> str:
    """Build the report of a results folder; its page. Its packages are optional."""
    from fembench.report.page import build

    with working("sweep: building the report"):
        return str(build(folder))


def _prepared(asked: SweepAsked) -> tuple[SweepSource, CampaignHosts, Folder]:
    """Campaign, hosts and folder; sets the launcher.

    Raises InputError if no job can be started so.
    """
    there = campaign_hosts(asked.hostfile, asked.machine, asked.weights or "")
    source = source_of(asked.campaign, there, asked.minutes, asked.results)
    use_settings({name: getattr(asked, name) or getattr(source.campaign, name) for name in SETTINGS})
    check_settings()
    _say_assumed(source.campaign, there)
    return source, there, folder_of(source, asked.results)


def _say_assumed(campaign: Campaign, there: CampaignHosts) -> None:
    """A line on hosts whose memory is not known, if a mesh is sized by it."""
    if there.assumed and any("memory" in table for table in campaign.cases):
        few = ", ".join(there.assumed[:3]) + (", …" if len(there.assumed) > 3 else "")
        progress(f"memory of {few}: not known, taken to be that of this host (--machine FILE would say)")


def _say_reasons(runs: Sequence[CampaignRun]) -> None:
    """A line for each case whose preconditioner was chosen."""
    for line in reasons(item.case for item in runs):
        progress(f"sweep: {line}")


def _say_damaged(folder: Folder, where: str) -> None:
    for path in folder.damaged():
        progress(f"{path} is damaged (not valid JSON){where}; its run is repeated")


def _say_changes(runs: Sequence[CampaignRun], folder: Folder) -> None:
    """A line for each file edited or deleted since runs were recorded."""
    edited = Counter(name for item in runs if (name := folder.changed(item)))
    for name, count in edited.items():
        progress(f"{name} has changed: runs to repeat: {count} (old records: {folder.runs}/superseded)")
    kept = [item for item in runs if folder.record(item)]
    for name, count in Counter(name for item in kept for name in gone(item.case)).items():
        progress(f"{name} no longer exists: records kept unchecked: {count}")
