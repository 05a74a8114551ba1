"""Run one case under MPI, verify it, and keep its record."""

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fembench.base.arguments import typed
from fembench.base.errors import InputError
from fembench.base.progress import progress, telling, working
from fembench.base.units import plural
from fembench.bench.campaign import held_against, reference_beside
from fembench.bench.campaign_file import reasons, run_id, settled
from fembench.bench.campaign_folder import failure_of
from fembench.bench.campaign_hosts import CampaignHosts, campaign_hosts, check_memory
from fembench.bench.default_campaign import ITERATIONS
from fembench.bench.duration import about
from fembench.launch.case_job import launch
from fembench.launch.job import REFUSED
from fembench.launch.line import check_crowd
from fembench.launch.run_job import REVOKED
from fembench.launch.scratch import occupied, reserved
from fembench.records.binding import CROWDED
from fembench.records.case import OTHER_WORK, Case
from fembench.records.record import Record
from fembench.records.store import load, save
from fembench.records.weights import Weights, weights_in
from fembench.report.runs import summary_line
from fembench.weights.stale import warning
from fembench.workflows.cases import (
    call_text,
    case_asked,
    check_least,
    nothing_kept,
    warn_of_weights,
    weighted,
    with_ranks,
)
from fembench.workflows.notebook import Runs
from fembench.workflows.sweep_plan import cores_of
from fembench.workflows.tune import Tuned, weights_of

QUICK = {"sets": 3, "warmups": 1}  # a look: too few for a VALID run (rule D1)
MOST_BESIDE = 16  # records that a run is compared with
MANY_PER_CORE = 8  # ranks; with more, a note says that starting them takes long


@typed
def run(
    mesh: Case | Path | str,
    *,
    ranks: int | None = None,
    quick: bool = False,
    results: Path | str = "results/single",
    weights: Weights | Tuned | Path | str | None = None,
    reference: Record | Path | str | None = None,
    hostfile: Path | str = "",
    timeout: float = 0.0,
    command: str = "",
    tell: Callable[[str], None] | None = None,
    **fields: Any,
) -> Runs:
    """Run one case under MPI, verify it, and return it.

    mesh: preset, box or file; or a case, such as that of a record
    ranks: by default those of a given case, or one
    fields: of the case, as in a campaign: iterations, tolerance, shares, precond, …
    m, l and xl do 100, 50 and 25 iterations a set, the work by which machines are
    compared, unless a field says what else to solve, how, or when to stop
    quick: for a look: one warm-up and three sets, so that the run is PROVISIONAL
    results: folder for the record, in `runs`, or for a note of the failure
    weights: what `shares` or `tune` found, or its file
    reference: a one-rank record, or its file, to compare with; by default the newest in `results`

    Raises InputError, or RunFailedError if the run fails. Ctrl-C ends the job.
    """
    hostfile = str(hostfile)
    weights = weights_of(weights)
    check_least(0, timeout=timeout)
    fields = with_ranks(ranks, fields)
    given = {**(QUICK if quick else {}), **_usual_work(mesh, fields), **fields}
    asked = weighted(case_asked(mesh, given), weights)
    with telling(tell):
        warn_of_weights(weights, [asked])
        case = settled(asked)
        there = campaign_hosts(hostfile)
        _say_what_comes(asked, case, there)
        folder = Path(results) / "runs"
        stem = run_id(case, 1).rsplit("-r", 1)[0]
        what = f"run: {case.question.mesh} on {plural(case.placement.ranks, 'rank')}"
        with occupied(folder, shared=True), reserved(folder, stem) as id, working(what) as now:
            now.tell(about(case, folder, cores_of(there)))
            with nothing_kept():
                outcome = launch(
                    case,
                    id=id,
                    command=command or call_text("run", asked.question.mesh, given),
                    scratch=folder,
                    hostfile=hostfile,
                    timeout=timeout,
                    reference=held_against(case, reference) if reference else reference_beside(case, folder),
                    fields_path=(folder / f"{id}.fields.npz").resolve() if case.output.fields else None,
                    tell=now.tell,
                )
            if outcome.result is None and outcome.kind not in (*REFUSED, REVOKED):
                save(failure_of(id, case, outcome), folder)
            record = outcome.content()
            path = save(record, folder)
        _warn_of_stale(weights, record)
        if tell is not progress:  # the command prints it with the tables
            progress(f"run: {summary_line(record)}")
    return Runs([record], str(path), _on_other_ranks(case, folder))


def _warn_of_stale(weights: Weights | Path | str | None, record: Record) -> None:
    if weights and (stale := warning(weights_in(weights), record)):
        progress(f"fembench: warning: {stale}")


def _usual_work(mesh: Case | Path | str, fields: Mapping[str, Any]) -> dict[str, int]:
    """The iterations of a set by which machines are compared, on a preset that has them."""
    usual = None if OTHER_WORK & fields.keys() else ITERATIONS.get(str(mesh))
    return {"iterations": usual} if usual else {}


def _on_other_ranks(case: Case, folder: Path) -> list[Record]:
    """The newest records of a mesh and method on other numbers of ranks; damaged ones are skipped."""
    mesh = run_id(case, 1).rpartition("-p")[0]
    paths = set(folder.glob(f"{mesh}-p[0-9]*.json")) - set(folder.glob(f"{mesh}-p{case.placement.ranks}-*"))
    found: list[Record] = []
    for path in sorted(paths, key=lambda path: -path.stat().st_mtime)[:MOST_BESIDE]:
        with contextlib.suppress(InputError):
            found.append(load(path))
    return found


def _say_what_comes(asked: Case, case: Case, there: CampaignHosts) -> None:
    """Tell the chosen preconditioner, and ranks that will share cores. Raises InputError."""
    for line in reasons([case] if case != asked else []):
        progress(f"run: {line}")
    ranks, threads = case.placement.ranks, case.placement.threads
    check_crowd(ranks, there.job)
    cores = cores_of(there)
    notes = [CROWDED] if 0 < cores * case.synthetic.dilate < ranks * threads else []
    notes += ["starting them may take minutes"] if 0 < MANY_PER_CORE * cores < ranks else []
    if notes:
        who = plural(ranks, "rank") + f" of {threads} threads" * (threads > 1)
        progress(f"run: {who} on {plural(cores, 'core')} of this machine: {'; '.join(notes)}")
    check_memory(case, there)
