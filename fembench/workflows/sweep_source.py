"""What a sweep runs: a campaign file, or the default campaign, made for the hosts of the job.

If some of several hosts are slow, the default campaign is made again after the run on all ranks with equal
shares: with shares by speed, and without the slow hosts.

On several hosts, the default campaign measures the nodes and the network before its runs.
"""

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fembench.base.arguments import as_in_file
from fembench.base.config import convert, from_toml, read_text
from fembench.base.errors import AllocationLostError, FembenchError, InputError, UnsharedError
from fembench.base.progress import progress
from fembench.base.units import few, percent
from fembench.bench.campaign_file import Campaign, CampaignRun, by_importance, cases_of, interleaved
from fembench.bench.campaign_folder import Folder
from fembench.bench.campaign_hosts import CampaignHosts
from fembench.bench.default_campaign import SOLUTION, as_toml, default_campaign, solution_campaign
from fembench.characterize.node_launches import PATIENCE, NodesAsked
from fembench.launch.hosts import same_host
from fembench.partition.shares import shares_text
from fembench.records.case import Case
from fembench.records.nodes import FOLDER, NodesRecord, nodes_of_campaign
from fembench.records.profile import load_profile
from fembench.records.record import Record
from fembench.report.node_tables import conclusions
from fembench.weights.host_speed import NODES, host_speeds
from fembench.weights.slow_nodes import slow_nodes
from fembench.workflows.characterize import machine
from fembench.workflows.nodes import measured_in

WHERE = "the default campaign"


@dataclasses.dataclass(frozen=True)
class SweepSource:
    """A campaign, with its text and its cases on the hosts of the job."""

    campaign: Campaign
    text: str
    where: str
    cases: list[Case]  # in the order of the tables
    made: bool = False  # by fembench, for these hosts

    @property
    def runs(self) -> list[CampaignRun]:
        """All runs, interleaved."""
        return interleaved(self.campaign, self.cases, self.where)

    @property
    def first_runs(self) -> list[CampaignRun]:
        """One run of each case, in the order of their importance."""
        return by_importance(self.cases)

    def equal(self, there: CampaignHosts) -> CampaignRun | None:
        """The most important run on all ranks of several hosts, with equal shares."""
        if not self.made or len(there.job.hosts) == 1:
            return None
        slots = there.job.slots
        runs = (run for run in self.first_runs if run.case.placement.ranks == slots)
        return next((run for run in runs if not run.case.placement.shares), None)


@dataclasses.dataclass(frozen=True)
class LearnedSpeeds:
    """What `fembench nodes` showed of the speed of the hosts."""

    hosts: CampaignHosts  # with their speeds
    shares: str  # of all ranks, by speed


def source_of(
    asked: Path | str | Campaign | None, there: CampaignHosts, minutes: float, results: Path | str | None
) -> SweepSource:
    """The campaign in a file, or the default one with the hosts' recorded speeds."""
    where = "these cases"
    if asked == SOLUTION:
        asked, where = solution_campaign(there), SOLUTION
    if isinstance(asked, Campaign):
        text = as_toml(asked, f"Campaign {asked.name}.")
        return SweepSource(asked, text, where, cases_of(asked, where, there))
    if asked:
        path = str(asked)
        text = read_text(path)
        campaign = from_toml(text, Campaign, where=path)
        source = SweepSource(campaign, text, path, cases_of(campaign, path, there))
        interleaved(campaign, source.cases, path)  # raises if there are too many
        return source
    plain = made(there, minutes)
    equal = plain.equal(there)
    folder = folder_of(plain, results)
    with contextlib.suppress(InputError):  # a damaged record: its run will be repeated
        learned = speeds_from(folder.record(equal) if equal else None, there, nodes_in(folder, there))
        return made(there, minutes, learned) if learned else plain
    return plain


def campaign_of(cases: Sequence[Mapping[str, Any]], **given: str | int | None) -> Campaign:
    """The campaign of these cases, with the fields that are given. Raises InputError."""
    if not isinstance(cases, Sequence) or isinstance(cases, str) or not cases:
        raise InputError(f"sweep: cases = {cases!r}: expected a list of at least one case")
    fields = {name: value for name, value in given.items() if value is not None}
    tables = [
        case | {name: _texts(value) for name, value in case.items() if name == "shares"}
        for case in as_in_file(list(cases))
    ]
    return convert({"name": "python", **fields, "cases": tables}, Campaign, where="sweep")


def _texts(shares: Any) -> Any:
    """Shares as a file has them: [2, 1] is "2,1"; [[2, 1], "1:1"] are two values."""
    if not isinstance(shares, list):
        return shares
    numbers = bool(shares) and all(type(one) in (int, float) for one in shares)
    return shares_text(shares) if numbers else [_texts(one) for one in shares]


def folder_of(source: SweepSource, results: Path | str | None) -> Folder:
    """The results folder."""
    return Folder(Path(results or Path("results") / source.campaign.name))


def made(there: CampaignHosts, minutes: float, learned: LearnedSpeeds | None = None) -> SweepSource:
    """The default campaign. `learned`: the speeds of the hosts, if they are known."""
    known, shares = (learned.hosts, learned.shares) if learned else (there, "")
    campaign = default_campaign(known, shares=shares, minutes=minutes)
    limit = f" --minutes {minutes:g}" if minutes else ""
    how = f"Made by fembench sweep{limit} for {there.job}."
    repeated = "\nEach case ran as often as the time allowed." if minutes else ""
    cases = cases_of(campaign, WHERE, there)
    return SweepSource(campaign, as_toml(campaign, how + repeated), WHERE, cases, made=True)


def nodes_in(folder: Folder, there: CampaignHosts) -> NodesRecord | None:
    """The newest measurement of these hosts in the folder, if any. Raises InputError."""
    found = nodes_of_campaign(folder.path)
    hosts = {host.name for host in there.job.hosts}
    return found if found and {node.listed for node in found.first.nodes} == hosts else None


def speeds_from(
    record: Record | None, there: CampaignHosts, nodes: NodesRecord | None
) -> LearnedSpeeds | None:
    """The speeds of the hosts, for the ranks as placed; None if nothing may be planned.

    What to plan is stated once (`weights.host_speed`): nothing without a slow host, or
    if foreign work disturbed the measurement. A run alone shows no interval.
    """
    if record is None or nodes is None or record.verdict.status == "INVALID":
        return None
    planned = host_speeds(nodes).planned
    listed = {node.listed: planned[node.name] for node in nodes.first.nodes if node.name in planned}
    hosts = dataclasses.replace(there, speeds=listed, measured=NODES)
    speeds = [
        next((speed for known, speed in listed.items() if same_host(known, name)), 0.0)
        for name in record.environment.host_of_rank
    ]
    if not all(speeds):
        return None
    return LearnedSpeeds(hosts, ",".join(f"{speed / sum(speeds):.9g}" for speed in speeds))


def say_unequal(found: LearnedSpeeds) -> None:
    """A line with the hosts whose speed is less than 90 % of the fastest."""
    slow = [f"{name} ({percent(speed, 0)} of the fastest)" for name, speed in found.hosts.slow().items()]
    progress(f"slow hosts, by {NODES}: {few(slow, 3)}; adding runs with shares by speed, and without them")


MACHINE = "machine.json"  # in the results folder: speeds and network of the hosts
FEW_MINUTES = 10.0  # with less, the network is not measured
FEWEST_MINUTES = 2.0  # with less, nor are slow hosts looked for, which takes up to half a minute
NODES_SECONDS, NETWORK_SECONDS = 30.0, 120.0  # that these take at most, and about
QUARTER = 0.25  # of the minutes, after which a launch that looks for them is ended


def measured_first(there: CampaignHosts, folder: Folder, minutes: float, machine: bool) -> dict[str, float]:
    """Measurements before the runs of the default campaign -> seconds they take."""
    found = {}
    if _wants_nodes(there, folder) and not 0 < minutes < FEWEST_MINUTES:
        found["slow hosts"] = NODES_SECONDS
    if _wants_network(there, folder) and not machine and not 0 < minutes < FEW_MINUTES:
        found["network"] = NETWORK_SECONDS
    return found


def _wants_nodes(there: CampaignHosts, folder: Folder) -> bool:
    """Whether slow hosts are to be looked for: once, before the campaign begins."""
    begun = nodes_in(folder, there) or any(folder.runs.glob("[!.]*.json"))
    return len(there.job.hosts) > 1 and not begun


def _wants_network(there: CampaignHosts, folder: Folder) -> bool:
    path = folder.path / MACHINE
    with contextlib.suppress(InputError):  # what is no profile stays
        return len(there.job.hosts) > 1 and not (path.exists() and load_profile(path).network)
    return False


def measure_nodes(there: CampaignHosts, folder: Folder, minutes: float, command: str) -> None:
    """Find the slow hosts, as `fembench nodes` does, unless it has begun or they are known.

    The slow ones are named with the cause. A failure is said, and ends nothing.
    """
    if not _wants_nodes(there, folder):
        return
    place, hostfile = folder.path / FOLDER, there.hostfile
    if 0 < minutes < FEWEST_MINUTES:
        by_hand = f"fembench nodes --results {place}" + (f" --hostfile {hostfile}" if hostfile else "")
        progress(f"nodes: left out, as they take up to half a minute ({by_hand})")
        return
    patience = min(PATIENCE, QUARTER * 60 * minutes) if minutes else PATIENCE
    try:
        asked = NodesAsked(hostfile=hostfile, command=command, patience=patience)
        record, path = measured_in(place, asked)
    except FembenchError as error:
        _raise_if_fatal(error)
        progress(f"nodes: not measured: {error}")
        return
    for line in conclusions(record, slow_nodes(record)):
        progress(f"nodes: {line}")
    progress(f"nodes: {path} (fembench nodes {place})")


def _raise_if_fatal(error: FembenchError) -> None:
    """Raise what every later run would meet: hosts gone, or a folder not shared."""
    if isinstance(error, (AllocationLostError, UnsharedError)):
        raise error


def measure_network(there: CampaignHosts, folder: Folder, minutes: float, command: str) -> None:
    """Write speeds and network of the hosts to MACHINE in the folder, unless it is there.

    A failure is said, and the campaign goes on without.
    """
    path, hostfile = folder.path / MACHINE, there.hostfile
    if not _wants_network(there, folder):
        return
    if 0 < minutes < FEW_MINUTES:
        by_hand = f"fembench characterize --network --quick -o {path}"
        by_hand += f" --hostfile {hostfile}" if hostfile else ""
        progress(f"network: left out, as it takes about two minutes ({by_hand})")
        return
    try:
        slots = there.job.slots
        machine(slots, path=path, quick=True, hostfile=hostfile, command=command, tell=progress)
    except FembenchError as error:
        _raise_if_fatal(error)
        progress(f"network: not measured: {error}")
        return
    progress(f"network: {path} (fembench predict --machine {path})")
