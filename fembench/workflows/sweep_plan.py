"""The jobs of a campaign before it runs: each with its hosts and expected duration.

What the sweep would refuse is refused here as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from fembench.base.errors import InputError, shown
from fembench.base.units import plural
from fembench.bench.campaign_file import Campaign, CampaignRun
from fembench.bench.campaign_folder import Folder
from fembench.bench.campaign_hosts import CampaignHosts
from fembench.bench.duration import STATED, Expectations, equations_of
from fembench.bench.inputs import gone
from fembench.launch.allocation import in_words, is_open, layout
from fembench.launch.hosts import HostSlots, merged
from fembench.launch.line import check_start


@dataclass(frozen=True)
class PlannedJob:
    """A run of a campaign that has not been started."""

    run: CampaignRun
    equations: int | None  # None: a mesh file that has not been run
    hosts: tuple[HostSlots, ...]
    recorded: bool  # it will not be started again
    seconds: float | None  # expected

    @property
    def place(self) -> str:
        """'n1:2, n2:2', or 'n1 … n50: 50 hosts, 200 ranks'."""
        return in_words(self.hosts)


@dataclass(frozen=True)
class SweepPlan:
    """All jobs of a campaign, in their order."""

    jobs: tuple[PlannedJob, ...]
    source: str  # of the expected durations
    left_out: tuple[str, ...] = ()  # names of cases for which there is no time
    first: Mapping[str, float] = field(default_factory=dict)  # measurements before the jobs -> their seconds

    @property
    def seconds(self) -> float:
        """Of what comes first and of the jobs that are not recorded, as far as known."""
        jobs = sum(job.seconds or 0.0 for job in self.jobs if not job.recorded)
        return sum(self.first.values()) + jobs


def plan_of(
    campaign: Campaign,
    runs: Sequence[CampaignRun],
    folder: Folder,
    there: CampaignHosts,
    left_out: Sequence[str] = (),
    *,
    first: Mapping[str, float] = MappingProxyType({}),
) -> SweepPlan:
    """The jobs of a campaign. Raises InputError for what the start would refuse."""
    check_start()
    refuse_early(runs, folder, there.hostfile)
    records = folder.records()
    expectations = Expectations(records, cores_of(there), campaign.timeout)

    def planned(run: CampaignRun) -> PlannedJob:
        (expected,) = expectations([run.case])
        hosts = merged(layout(run.case.placement, there.job))
        recorded = folder.record(run) is not None
        return PlannedJob(run, equations_of(run.case, records), hosts, recorded, expected)

    source = f"from {plural(len(records), 'record')} in {folder.path}"
    stated = f"{STATED}; {folder.path} has no records"
    return SweepPlan(tuple(map(planned, runs)), source if records else stated, tuple(left_out), first)


def refuse_early(runs: Sequence[CampaignRun], folder: Folder, hostfile: str) -> None:
    """Raises InputError for records of other hosts, or if a run to come lacks a file."""
    _refuse_other_hosts(runs, folder, hostfile)
    for run in runs:
        missing = gone(run.case)
        if missing and not folder.record(run):
            raise InputError(f"cannot read {shown(missing[0])}, which the campaign needs: no such file")


def _refuse_other_hosts(runs: Sequence[CampaignRun], folder: Folder, hostfile: str) -> None:
    others = folder.on_other_hosts(runs, hostfile)
    if others:
        asked = shown(others[0].environment.hosts_asked) or "neither a host file nor a batch system"
        raise InputError(
            f"{folder.runs}: records made on other hosts ({asked}): {len(others)}; "
            "one folder takes records of the same hosts only: use these, or give another --results"
        )


def cores_of(there: CampaignHosts) -> int:
    """Cores that the ranks of a job share; 0: a core per rank."""
    return there.job.slots if is_open(there.job) else 0
