"""Run a campaign: a file, cases, or the default campaign for the hosts of the job."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fembench.base.arguments import typed
from fembench.base.errors import InputError, RunFailedError
from fembench.base.progress import progress, telling, working
from fembench.base.units import few, plural
from fembench.bench.campaign_file import Campaign, CampaignRun, reasons
from fembench.bench.campaign_folder import Folder
from fembench.bench.campaign_hosts import CampaignHosts, campaign_hosts
from fembench.bench.inputs import gone
from fembench.launch.launchers import SETTINGS, use_settings
from fembench.launch.scratch import occupied
from fembench.records.nodes import FOLDER, NodesRecord, nodes_of_campaign
from fembench.records.profile import Profile
from fembench.records.quiet import disturbance, foreign_work
from fembench.records.record import Failure
from fembench.records.store import failures
from fembench.records.weights import Weights
from fembench.report.conclusions import conclusions
from fembench.report.results import results as pooled
from fembench.report.slow_hosts import HostAdvice, host_advice
from fembench.weights.host_speed import host_speeds
from fembench.workflows.cases import check_least, check_words, warn_of_weights
from fembench.workflows.notebook import Runs
from fembench.workflows.sweep_plan import SweepPlan, plan_of, refuse_early
from fembench.workflows.sweep_runs import Minutes, Sweep
from fembench.workflows.sweep_source import (
    campaign_of,
    folder_of,
    measure_network,
    measure_nodes,
    measured_first,
    source_of,
)
from fembench.workflows.sweep_state import standing
from fembench.workflows.tune import Tuned, weights_of

ELSEWHERE = "to repeat recorded runs, give another folder (--results FOLDER)"


@typed
def sweep(
    campaign: Path | str | None = None,
    *,
    cases: Sequence[Mapping[str, Any]] | None = None,
    name: str | None = None,
    repetitions: int | None = None,
    results: Path | str | None = None,
    minutes: float = 0.0,
    weights: Weights | Tuned | Path | str | None = None,
    machine: Profile | Path | str = "",
    hostfile: Path | str = "",
    settings: Mapping[str, object] | None = None,
    report: bool = False,
    planned: Callable[[SweepPlan], None] | None = None,
    ended: Callable[[Sweep], None] | None = None,
    command: str = "fembench.sweep()",
    tell: Callable[[str], None] | None = None,
) -> Runs:
    """Run a campaign and return its runs; call it again to go on where it stopped.

    campaign: a file, or "solution"; without it and `cases`, the default campaign for
    the hosts of the job
    cases: as [[cases]] of a campaign file: {"mesh": "m", "ranks": [1, 2, 4]}; lists are
    multiplied out, but for numbers of shares; a case without a mesh is of m1
    name, repetitions: of the campaign of these cases, by default "python" and 1
    results: folder; by default results/NAME
    minutes: end after this time, and tell what was left out; 0: each run once
    weights: what `shares` or `tune` found, or its file, for all cases with its number of
    ranks and without shares
    machine: what `machine` returned, or its file, for words of the cases on hosts and memory
    settings: launcher, launcher_options and map_by, in place of those of the campaign
    report: whether to leave time for one
    planned: is given the plan of the campaign, of which then nothing is run
    ended: is given the sweep while its folder is held

    Raises InputError, and RunFailedError if no run has a record.
    """
    begin = time.monotonic()
    weights = weights_of(weights)
    check_least(0, minutes=minutes)
    _check_asked(campaign, cases, name, repetitions)
    for key in settings or ():
        check_words(SETTINGS, settings=key)
    limit = Minutes(minutes, begin, report)
    with telling(tell):
        there = campaign_hosts(str(hostfile), machine, weights)
        asked = campaign if cases is None else campaign_of(cases, name=name, repetitions=repetitions)
        source = source_of(asked, there, minutes, results)
        use_settings(
            {each: (settings or {}).get(each) or getattr(source.campaign, each) for each in SETTINGS}
        )
        _say_assumed(source.campaign, there)
        one = Sweep(source, folder_of(source, results), there, limit, weights, command)
        if planned:
            planned(_plan(one, bool(machine)))
        else:
            _run(one, bool(machine), ended)
    return Runs(one.measured, str(one.folder.path))


def _check_asked(
    campaign: Path | str | None, cases: object, name: str | None, repetitions: int | None
) -> None:
    if campaign and cases is not None:
        raise InputError("sweep: a campaign file and cases: expected one of them")
    if cases is None and (name, repetitions) != (None, None):
        raise InputError("sweep: name and repetitions belong to cases: expected cases=[…], too")
    if campaign == "":
        raise InputError("sweep: campaign = '': expected a file")


def _run(sweep: Sweep, machine: bool, ended: Callable[[Sweep], None] | None) -> None:
    """Run all, the folder held. `machine`: its profile is given."""
    source = sweep.source
    folder = sweep.folder
    there = sweep.there
    limit = sweep.limit
    if limit:
        limit.left()  # raises if there is no time
    folder.check(source.text, source.where, there, grown=source.made)
    to_come, kept = sweep.runs()
    runs = list(dict.fromkeys([*kept, *to_come]))
    refuse_early(runs, folder, there)  # first: what is refused leaves no folder
    with occupied(folder.runs):
        folder.hold(source.text, source.where, there, grown=source.made)
        _say_damaged(folder, ": moved to superseded")
        folder.set_damaged_aside()
        _say_changes(runs, folder)
        _say_reasons(runs)
        warn_of_weights(sweep.weights, (run.case for run in runs))
        with standing(folder.path) as state:
            sweep.tell = state.tell
            if source.made:
                measure_nodes(there, folder, limit.minutes, sweep.command)
                if not machine:
                    measure_network(there, folder, limit.minutes, sweep.command)
            sweep.prepare()
            try:
                sweep.execute()
            except KeyboardInterrupt as error:
                error.args = (_kept(sweep),)
                raise
            if ended:
                ended(sweep)
            elif names := sweep.left_out:  # the command prints them with the tables
                left = plural(len(names), "case")
                progress(f"sweep: {left} left out: no time within {limit.minutes:g} minutes: {few(names, 3)}")
    if line := limit.overrun():
        progress(line)
    if not sweep.measured:
        none = f"no run of {folder.path} has a record"
        late = f"minutes = {limit.minutes:g}: no run ended in time; give more minutes"
        raise RunFailedError(none if sweep.failed else late)


def _kept(sweep: Sweep) -> str:
    """How many runs have a record, how many of them are DISTURBED, and how to go on."""
    records = [record for run in sweep.runs()[1] if (record := sweep.folder.record(run))]
    n = sum(bool(foreign_work([record.environment])) for record in records)
    loud, elsewhere = (f", {n} of them DISTURBED", f"; {ELSEWHERE}") if n else ("", "")
    return f"{plural(len(records), 'run')} kept{loud}: start the sweep again to continue{elsewhere}"


def _plan(sweep: Sweep, machine: bool) -> SweepPlan:
    """What the sweep would do. Raises InputError for what it would refuse."""
    source = sweep.source
    folder = sweep.folder
    there = sweep.there
    minutes = sweep.limit.minutes
    folder.check(source.text, source.where, there, grown=source.made)
    _say_damaged(folder, "")
    first = measured_first(there, folder, minutes, machine) if source.made else {}
    sweep.prepare(sum(first.values()))
    runs = sweep.order.planned()
    _say_reasons(runs)
    warn_of_weights(sweep.weights, (run.case for run in runs))
    return plan_of(source.campaign, runs, folder, there, sweep.left_out, first=first)


class SweepFindings(NamedTuple):
    """What the runs of a sweep say."""

    failures: list[Failure]
    nodes: NodesRecord | None  # of the campaign
    invalid: list[str]  # names of INVALID records
    disturbed: str  # a line on other work that disturbed the times; "": none
    advice: HostAdvice | None  # whether to do without the slow hosts
    conclusions: list[str]  # in sentences, with how to run without the slow hosts that the nodes show


def findings_of(sweep: Sweep) -> SweepFindings:
    """Validity, disturbances and slow hosts, of a sweep that has ended."""
    records, folder = sweep.measured, sweep.folder.path
    nodes = nodes_of_campaign(folder)
    speeds = host_speeds(nodes, records)
    found = pooled(records, nodes)
    advice = host_advice(found, speeds) if records else None
    faulty = advice and nodes and set(advice.hosts) == {host.name for host in speeds.faulty}
    leave_out = f"`fembench nodes {folder / FOLDER} --without good`"
    said = conclusions(found, sweep.failed)
    if said and said[0].startswith("DISTURBED"):
        said.insert(1, f"{ELSEWHERE[0].upper()}{ELSEWHERE[1:]}.")
    without = f"To run without them: {leave_out}, then --hostfile good and another --results."
    return SweepFindings(
        list(failures(folder)),
        nodes,
        [record.id for record in records if record.verdict.status == "INVALID"],
        disturbance([record.environment for record in records], "times"),
        advice,
        [*said, *([without] if faulty else [])],
    )


def build_page(folder: Path, said: Sequence[str]) -> str:
    """Build the report of a results folder; its page. Its packages are optional.

    said: the conclusions of `findings_of`
    """
    from fembench.report.page import build

    with working("sweep: building the report"):
        return str(build(folder, said=said))


def _say_assumed(campaign: Campaign, there: CampaignHosts) -> None:
    """A line on hosts whose memory is not known, if a mesh is sized by it."""
    if there.assumed and any("memory" in table for table in campaign.cases):
        hosts = few(there.assumed, 3)
        progress(f"memory of {hosts}: not known, taken to be that of this host (a machine profile would say)")


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
