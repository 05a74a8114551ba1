"""The jobs of a campaign before it runs: each with its hosts and expected duration.

What the sweep would refuse is refused here as well. `fembench sweep --dry-run` prints
ranks, hosts, mesh and duration of each job.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fembench.base.errors import InputError, shown
from fembench.base.tables import table
from fembench.base.units import clock, count, plural
from fembench.bench.campaign_file import Campaign, CampaignRun
from fembench.bench.campaign_folder import Folder
from fembench.bench.campaign_hosts import CampaignHosts
from fembench.bench.duration import STATED, Expectations, equations_of
from fembench.bench.inputs import gone
from fembench.launch.allocation import in_words, is_open, layout
from fembench.launch.hosts import HostSlots, merged
from fembench.launch.line import check_crowd, check_start
from fembench.mesh.presets import check_known
from fembench.records.case import FIELDS, Case
from fembench.report.results import short_shares


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
    refuse_early(runs, folder, there)
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


def refuse_early(runs: Sequence[CampaignRun], folder: Folder, there: CampaignHosts) -> None:
    """Raises InputError for records of other hosts, or if a run to come lacks a file or cannot start."""
    check_start()
    _refuse_other_hosts(runs, folder, there.hostfile)
    for run in runs:
        if folder.record(run):
            continue
        check_crowd(run.case.placement.ranks, there.job)
        missing = gone(run.case)
        if missing:
            if not Path(missing[0]).suffix:
                check_known(run.case.question.mesh)
            raise InputError(f"cannot read {shown(missing[0])}, which the campaign needs: no such file")


def _refuse_other_hosts(runs: Sequence[CampaignRun], folder: Folder, hostfile: str) -> None:
    others = folder.on_other_hosts(runs, hostfile)
    if others:
        asked = shown(others[0].environment.hosts_asked) or "neither a host file nor a batch system"
        raise InputError(
            f"{folder.runs}: records made on other hosts ({asked}): {len(others)}; "
            "one folder takes records of the same hosts only: use these, or give another folder"
        )


def cores_of(there: CampaignHosts) -> int:
    """Cores that the ranks of a job share; 0: a core per rank."""
    return there.job.slots if is_open(there.job) else 0


OWN_COLUMNS = {"mesh", "ranks", "hosts", "per_node", "iterations", "storage"}
OWN_COLUMNS |= {"sets", "seconds", "precision", "max_seconds"}


def as_text(plan: SweepPlan) -> str:
    """A row per job, then how long all take and how that is known."""
    rows = [_row(k, job) for k, job in enumerate(plan.jobs, 1)]
    recorded = sum(job.recorded for job in plan.jobs)
    unknown = sum(job.seconds is None and not job.recorded for job in plan.jobs)
    words = [plural(len(rows), "run")]
    words += [f"{recorded} recorded already"] if recorded else []
    words += [f"{unknown} of unknown duration (mesh files)"] if unknown else []
    heads = ("run", "mesh", "equations", "ranks", "hosts", "case", "timed", "takes", "id")
    expected = f"about {clock(plan.seconds)} expected ({plan.source})"
    lines = [f"before the runs: {name}, about {clock(seconds)}" for name, seconds in plan.first.items()]
    lines += [f"{', '.join(words)}; {expected}", *(f"left out (no time): {x}" for x in plan.left_out)]
    return "\n".join([table(heads, rows, align="rlrrlllrl"), *lines])


def _row(k: int, job: PlannedJob) -> tuple[object, ...]:
    case = job.run.case
    takes = "recorded" if job.recorded else None if job.seconds is None else clock(job.seconds)
    equations = None if job.equations is None else count(job.equations)
    place = case.question.mesh, equations, case.placement.ranks, job.place
    return (k, *place, _others(case), timed(case), takes, job.run.id)


def _others(case: Case) -> str:
    """What is not at its default and in no column of its own: 'csr · jacobi'."""
    said = {name: value for name, value in case.said().items() if name not in OWN_COLUMNS}
    if "shares" in said:
        said["shares"] = short_shares(said["shares"])
    return " · ".join([case.method.storage, *(FIELDS[name].shown(value) for name, value in said.items())])


def timed(case: Case) -> str:
    """'20 sets', '10 sets of 50 iterations, at least 10.5 s'."""
    words = plural(case.effort.sets, "set")
    words += f" of {plural(case.stop.iterations, 'iteration')}" if case.stop.iterations else ""
    words += f", at least {case.effort.seconds:g} s" if case.effort.seconds else ""
    precise = f", then until ± {case.effort.precision:g} % or {case.effort.max_seconds:g} s"
    return words + precise if case.effort.precision else words


def as_tree(plan: SweepPlan) -> dict[str, Any]:
    """The same for JSON."""
    runs = [
        {
            "id": job.run.id,
            "mesh": job.run.case.question.mesh,
            "equations": job.equations,
            "ranks": job.run.case.placement.ranks,
            "hosts": {host.name: host.slots for host in job.hosts},
            "sets": job.run.case.effort.sets,
            "seconds": job.run.case.effort.seconds,
            "precision": job.run.case.effort.precision,
            "max_seconds": job.run.case.effort.max_seconds,
            "recorded": job.recorded,
            "minutes": None if job.seconds is None else job.seconds / 60,
        }
        for job in plan.jobs
    ]
    found = {"runs": runs, "minutes": plan.seconds / 60, "expected": plan.source}
    return found | {"first": dict(plan.first), "left_out": list(plan.left_out)}
