"""A campaign: many cases, a job each, interleaved, resumable (`campaign_folder`)."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fembench.base.config import read_toml
from fembench.base.errors import AllocationLostError, UnsharedError
from fembench.bench.campaign_file import Campaign, CampaignRun, expand
from fembench.bench.campaign_folder import Folder
from fembench.bench.campaign_hosts import CampaignHosts
from fembench.bench.inputs import Inputs
from fembench.bench.one_rank_reference import question_of, reference_of
from fembench.launch.case_job import launch
from fembench.launch.job import UNSHARED, Tell
from fembench.launch.run_job import REVOKED, JobEnd
from fembench.records.case import Case
from fembench.records.record import NO_TIME, Record, Reference


@dataclass(frozen=True)
class Done:
    """A finished run of a campaign, from this start or an earlier one."""

    run: CampaignRun
    record: Record | None
    outcome: JobEnd[Record] | None  # None if the record already existed

    @property
    def cut(self) -> bool:
        """Whether it was ended because the time of the campaign was up."""
        return self.outcome is not None and self.outcome.kind == NO_TIME


def read_campaign(path: Path, there: CampaignHosts | None = None) -> tuple[Campaign, list[CampaignRun]]:
    """A campaign and its runs, on these hosts (None: the job's). Raises InputError."""
    campaign = read_toml(path, Campaign)
    return campaign, expand(campaign, str(path), there)


def execute(
    campaign: Campaign,
    runs: Iterable[CampaignRun],
    folder: Folder,
    *,
    command: str,
    hostfile: str = "",
    mpi_options: Sequence[str] = (),
    cores: Sequence[tuple[int, ...]] = (),
    limit: Callable[[], float] = lambda: math.inf,
    again: bool = False,
    tell: Tell | None = None,
) -> Iterator[Done]:
    """Run everything without a record, one after another; yields each run when done.

    The next run is drawn from `runs` after that. `again`: repeat runs whose
    record is INVALID. `limit`: seconds after which a run is ended at the
    latest; that is no failure. `tell` gets lines on how far a run is.
    Raises AllocationLostError if the batch system takes the hosts away, UnsharedError
    if a host cannot read the folder.
    """
    references: dict[bytes, Record] = {}
    for run in runs:
        record, outcome = folder.record(run), None
        if record is None or (again and record.verdict.status == "INVALID"):
            own, left = campaign.timeout or math.inf, limit()
            outcome = launch(
                run.case,
                id=run.id,
                command=command,
                scratch=folder.runs,
                hostfile=hostfile,
                mpi_options=mpi_options,
                cores=cores,
                timeout=_finite(min(own, left)),
                reference=_reference(references, run.case, folder.inputs),
                fields_path=(folder.runs / f"{run.id}.fields.npz").resolve()
                if run.case.output.fields
                else None,
                tell=tell,
            )
            if outcome.kind == REVOKED:
                raise AllocationLostError(
                    f"{outcome.message}; the same command in a new job on these hosts continues the campaign"
                )
            if outcome.kind == UNSHARED:  # no run of the campaign would fare better
                raise UnsharedError(outcome.message)
            if outcome.kind == "timeout" and left < own:
                outcome = dataclasses.replace(outcome, kind=NO_TIME)
            else:
                folder.keep(run, outcome)
            record = outcome.result
        if record is not None and run.case.placement.ranks == 1 and record.verdict.status != "INVALID":
            kept = references.setdefault(question_of(run.case), record)
            if folder.inputs.changed(kept):  # while the campaign ran
                references[question_of(run.case)] = record
        yield Done(run, record, outcome)


def _finite(seconds: float) -> float:
    """A time limit as the launcher takes it, in tenths of a second: 0 for none."""
    return math.ceil(10 * seconds) / 10 if math.isfinite(seconds) else 0.0


def _reference(references: dict[bytes, Record], case: Case, inputs: Inputs) -> Reference | None:
    record = references.get(question_of(case))
    return None if record is None or inputs.changed(record) else reference_of(record)
