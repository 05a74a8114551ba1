"""Run one case under MPI, verify it, and keep its record."""

from dataclasses import dataclass
from pathlib import Path

from fembench.base.progress import progress, working
from fembench.base.units import plural
from fembench.bench.campaign_file import run_id
from fembench.bench.campaign_folder import failure_of
from fembench.bench.campaign_hosts import campaign_hosts, check_memory
from fembench.bench.fastest import reasons, settled
from fembench.bench.one_rank_reference import held_against, reference_beside
from fembench.launch.case_job import launch
from fembench.launch.job import REFUSED
from fembench.launch.line import MOST_PER_CORE, ranks_per_core
from fembench.launch.run_job import REVOKED, JobEnd
from fembench.launch.scratch import occupied, reserved
from fembench.records.case import Case
from fembench.records.record import Record
from fembench.records.store import save
from fembench.weights.stale import disturbance
from fembench.workflows.cases import warn_if_stale, weighted

MANY_PER_CORE = 8  # ranks; with more, a note says that starting them takes long


@dataclass(frozen=True)
class CaseOutcome:
    """A run that has ended: its record, or why there is none."""

    job: JobEnd[Record]
    path: Path | None  # of the record

    @property
    def refused(self) -> bool:
        """Whether there is no record because the case cannot run here."""
        return self.job.kind in REFUSED

    @property
    def disturbed(self) -> str:
        """A line on other work that disturbed the times; "" if none is known of."""
        return disturbance([self.job.result.environment], "times") if self.job.result else ""


def run_case(
    case: Case,
    *,
    results: Path | str = "results/single",
    weights: str | None = None,
    reference: str | None = None,
    hostfile: str = "",
    timeout: float = 0.0,
    command: str,
) -> CaseOutcome:
    """Run a case and write its record, or its failure, into `results`/runs.

    weights: a file, from which the shares are taken
    reference: a one-rank record of the same question to compare with; by default the newest in `results`
    hostfile: the hosts; by default those of the batch system, or this machine
    timeout: seconds after which the run is ended; 0: none
    command: what the record says was typed

    Raises InputError.
    """
    asked, folder = weighted(case, weights), Path(results) / "runs"
    case = settled(asked)
    for line in reasons([case] if case != asked else []):
        progress(f"run: {line}")
    ranks = plural(case.placement.ranks, "rank")
    each = ranks_per_core(case.placement.ranks, hostfile)
    if MANY_PER_CORE < each <= MOST_PER_CORE:
        turns = f"{each} ranks per core take turns (OVERSUBSCRIBED: functional only)"
        progress(f"{ranks} on this machine: {turns}; starting them may take minutes")
    check_memory(case, campaign_hosts(hostfile))
    stem = run_id(case, 1).rsplit("-r", 1)[0]
    doing = working(f"run: {case.question.mesh} on {ranks}")
    path = None
    with occupied(folder, shared=True), reserved(folder, stem) as id, doing:
        outcome = launch(
            case,
            id=id,
            command=command,
            scratch=folder,
            hostfile=hostfile,
            timeout=timeout,
            reference=held_against(case, reference) if reference else reference_beside(case, folder),
            fields_path=(folder / f"{id}.fields.npz").resolve() if case.output.fields else None,
        )
        if outcome.result is not None:
            path = save(outcome.result, folder)
        elif outcome.kind not in (*REFUSED, REVOKED):
            save(failure_of(id, case, outcome), folder)
    if outcome.result is not None:
        warn_if_stale(weights, outcome.result)
    return CaseOutcome(outcome, path)
