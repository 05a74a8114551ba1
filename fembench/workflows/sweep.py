"""Run a campaign: a file, cases, or the default campaign for the hosts of the job."""

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from fembench.base.errors import RunFailedError
from fembench.base.progress import progress
from fembench.bench.campaign_file import Campaign, CampaignRun
from fembench.bench.campaign_folder import Folder
from fembench.bench.campaign_hosts import CampaignHosts, campaign_hosts
from fembench.bench.inputs import gone
from fembench.launch.launchers import SETTINGS, use_settings
from fembench.launch.line import check_settings
from fembench.launch.scratch import occupied
from fembench.records.record import Record
from fembench.workflows.sweep_plan import SweepPlan, plan_of, refuse_early
from fembench.workflows.sweep_runs import Sweep, overrun, runs_of, time_left
from fembench.workflows.sweep_source import (
    SweepAsked,
    SweepSource,
    folder_of,
    measure_network,
    measure_nodes,
    measured_first,
    source_of,
)


@contextlib.contextmanager
def swept(asked: SweepAsked) -> Iterator[Sweep]:
    """Run everything, then give the sweep, while its folder is held. Raises InputError, RunFailedError."""
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
    return plan_of(source.campaign, runs, folder, there, sweep.left_out, hostfile=file, first=first)


def invalid(records: Sequence[Record]) -> list[str]:
    """The names of the records that are INVALID."""
    return [record.id for record in records if record.verdict.status == "INVALID"]


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


def _say_damaged(folder: Folder, where: str) -> None:
    for path in folder.damaged():
        progress(f"{path} is damaged (not valid JSON){where}; its run is repeated")


def _say_changes(runs: Sequence[CampaignRun], folder: Folder) -> None:
    """A line for each file edited or deleted, and each default changed, since runs were recorded."""
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
