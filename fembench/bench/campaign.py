"""A campaign: many cases, a job each, interleaved, resumable (`campaign_folder`).

The reference of a case is a run of the same question on one rank.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fembench.base.config import read_toml
from fembench.base.errors import AllocationLostError, InputError, UnsharedError
from fembench.base.units import plural
from fembench.bench.campaign_file import Campaign, CampaignRun, expand
from fembench.bench.campaign_folder import Folder
from fembench.bench.campaign_hosts import CampaignHosts
from fembench.bench.inputs import Inputs
from fembench.launch.case_job import launch
from fembench.launch.job import UNSHARED, Tell
from fembench.launch.run_job import REVOKED, JobEnd
from fembench.records.answer import rounding_decides
from fembench.records.case import Case, fields_of
from fembench.records.record import NO_TIME, Record, Reference
from fembench.records.store import load

QUESTION = fields_of("question")  # fields that a run has in common with its one-rank reference


def question_of(case: Case) -> bytes:
    """The question of a case, without the method."""
    return msgspec.json.encode([case.flat()[name] for name in QUESTION])


def reference_of(record: Record) -> Reference | None:
    """The reference that other runs of the same question are compared with.

    None if rounding decides the result.
    """
    if rounding_decides(record):
        return None
    v = record.verification
    return Reference(
        source=record.id,
        energy=v.energy,
        iterations=record.solve.iterations,
        fingerprint=v.fingerprint,
        solution_norm=v.solution_norm,
    )


def reference_beside(case: Case, runs: Path) -> Reference | None:
    """The reference for a case from the newest one-rank run of its question in a folder.

    None if there is no such run, it is INVALID, rounding decides its result, or its mesh
    or problem file has changed since. Records that cannot be read are skipped.
    """
    one_rank = sorted(runs.glob("[!.]*-p1-*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in one_rank:
        with contextlib.suppress(InputError):
            if question_of(load(path).case) == question_of(case):
                return held_against(case, path)
    return None


def held_against(case: Case, given: Record | Path | str) -> Reference | None:
    """The reference for a case, from a record or its file; None if rounding decides its result.

    Raises InputError if it answers another question.
    """
    record, inputs = given if isinstance(given, Record) else load(given), Inputs()
    where = f"reference {record.id if record is given else given}"
    if record.case.placement.ranks != 1 or record.verdict.status == "INVALID":
        found = f"{record.verdict.status}, {plural(record.case.placement.ranks, 'rank')}"
        raise InputError(f"{where}: {found}; expected a record of one rank that is not INVALID")
    if not inputs.same_mesh(case, record):
        other = f"mesh '{record.case.question.mesh}'"
        raise InputError(f"{where}: {other}; expected the mesh of the case, '{case.question.mesh}'")
    if not inputs.same_problem(case, record):
        other = f"problem '{record.case.question.problem}'"
        raise InputError(f"{where}: {other}; expected the problem of the case, '{case.question.problem}'")
    mine, theirs = case.flat(), record.case.flat()
    for name in QUESTION:
        if name not in ("mesh", "problem") and mine[name] != theirs[name]:
            raise InputError(f"{where}: {name} = {theirs[name]!r}; expected that of the case, {mine[name]!r}")
    return reference_of(record)


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
