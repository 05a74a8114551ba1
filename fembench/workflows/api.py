"""The functions of `import fembench`: what the verbs do, from Python."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from fembench.base.config import convert
from fembench.base.errors import InputError, RunFailedError
from fembench.base.progress import telling
from fembench.bench.campaign_file import Campaign
from fembench.host.finding import Finding
from fembench.records.case import FIELDS, Case
from fembench.records.prediction import Prediction
from fembench.records.profile import Profile
from fembench.records.record import Record
from fembench.records.weights import Weights, save_weights
from fembench.weights.make import by_time
from fembench.workflows import cases
from fembench.workflows.characterize import characterized, ranks_of_job
from fembench.workflows.doctor import whole_examination
from fembench.workflows.notebook import Runs
from fembench.workflows.run import run_case
from fembench.workflows.sweep import swept
from fembench.workflows.sweep_source import SweepAsked
from fembench.workflows.tune import Tuned, tune_case

Tell = Callable[[str], None]


def run(
    mesh: Path | str,
    *,
    results: Path | str = "results/single",
    weights: Path | str | None = None,
    reference: Path | str | None = None,
    hostfile: str = "",
    timeout: float = 0.0,
    tell: Tell | None = None,
    **fields: Any,
) -> Runs:
    """Run one case under MPI, verify it, and return it.

    fields: of the case, as in a campaign: ranks, iterations, tolerance, shares, precond, …
    results: folder for the record
    weights: a file with shares; reference: a one-rank record to compare with
    timeout: seconds; 0: none
    tell: called with each line of progress

    Raises InputError, or RunFailedError if the run fails. Ctrl-C ends the job.
    """
    _check_least(0, timeout=timeout)
    case = case_of(mesh, fields)
    typed = ", ".join([repr(str(mesh)), *(f"{name}={value!r}" for name, value in fields.items())])
    with telling(tell):
        done = run_case(
            case,
            results=results,
            weights=str(weights) if weights else None,
            reference=str(reference) if reference else None,
            hostfile=hostfile,
            timeout=timeout,
            command=f"fembench.run({typed})",
        )
    return Runs([done.job.content()], str(done.path))


def sweep(
    campaign: Path | str | None = None,
    *,
    cases: Sequence[Mapping[str, Any]] = (),
    name: str = "python",
    repetitions: int = 1,
    results: Path | str | None = None,
    minutes: float = 0.0,
    weights: Path | str | None = None,
    machine: Path | str = "",
    hostfile: str = "",
    tell: Tell | None = None,
) -> Runs:
    """Run a campaign and return its runs; call it again to go on where it stopped.

    campaign: a file; without it and without `cases`, the default campaign for the hosts of the job
    cases: as [[cases]] of a campaign file: {"mesh": "m", "ranks": [1, 2, 4]}; lists are multiplied out
    name, repetitions: of the campaign of these cases
    results: folder; by default results/NAME
    minutes: end after this time; 0: each run once
    weights, machine: files, as for `fembench sweep`

    Raises InputError, and RunFailedError if no run has a record.
    """
    if campaign and cases:
        raise InputError("sweep: a campaign file and cases: expected one of them")
    _check_least(0, minutes=minutes)
    asked = SweepAsked(
        campaign=_campaign(name, repetitions, cases) if cases else str(campaign) if campaign else None,
        results=str(results) if results else None,
        weights=str(weights) if weights else None,
        hostfile=hostfile,
        machine=str(machine),
        minutes=minutes,
        report=False,
        command="fembench.sweep()",
    )
    with telling(tell), swept(asked) as done:
        pass
    if not done.measured:
        raise RunFailedError(f"no run of {done.folder.path} has a record")
    return Runs(done.measured, str(done.folder.path))


def page(runs: Runs | Path | str, *, against: Runs | Path | str | None = None) -> Path:
    """Build the report of a results folder; the path of its
    index.html. Raises InputError.

    runs: what `sweep` returned, or the folder
    against: other runs, or their folder, to compare with: of another cluster, or of an earlier day
    """
    from fembench.report.page import build
    from fembench.report.tables import other_campaign

    return build(_folder(runs), against=None if against is None else other_campaign(_folder(against)))


def _folder(runs: Runs | Path | str) -> Path:
    folder = Path(runs.source if isinstance(runs, Runs) else runs)
    if not folder.is_dir():
        raise InputError(f"page of {folder}: not a folder of results; expected one of a sweep")
    return folder


def shares(runs: Runs, *, path: Path | str | None = None) -> Weights:
    """The shares of the ranks by measured time.

    runs: all on one number of ranks
    path: a file to write them to, for `run` and `sweep`

    Raises InputError, also for runs that other work disturbed.
    """
    found = by_time(list(runs))
    if path:
        save_weights(found, path)
    return found


def machine(
    ranks: int = 0,
    *,
    path: Path | str,
    network: bool = True,
    quick: bool = False,
    hostfile: str = "",
    tell: Tell | None = None,
) -> Profile:
    """Measure the speeds of the ranks and, with `network`, messages; write the profile.

    ranks: 0: one per slot of the hosts
    path: file of the profile, which `predict` reads
    quick: fewer and shorter measurements

    Raises InputError or RunFailedError.
    """
    count = ranks_of_job(ranks, hostfile)
    with telling(tell):
        return characterized(
            count,
            output=str(path),
            network=network and count > 1,
            quick=quick,
            hostfile=hostfile,
            command="fembench.machine()",
        )


def tune(
    mesh: Path | str,
    *,
    results: Path | str | None = None,
    path: Path | str | None = None,
    rounds: int = 2,
    pairs: int = 6,
    hostfile: str = "",
    timeout: float = 600.0,
    tell: Tell | None = None,
    **fields: Any,
) -> Tuned:
    """Find the shares for a case and prove their gain.

    fields: of the case, as for `run`
    results: folder of the records; path: file for the weights
    rounds: at most, each deriving weights; pairs: of equal and weighted runs

    Raises InputError or RunFailedError.
    """
    _check_least(1, rounds=rounds, pairs=pairs)
    _check_least(0, timeout=timeout)
    with telling(tell):
        return tune_case(
            case_of(mesh, fields),
            results=str(results) if results else None,
            output=str(path) if path else None,
            rounds=rounds,
            pairs=pairs,
            hostfile=hostfile,
            timeout=timeout,
            command=f"fembench.tune({str(mesh)!r})",
        )


def predict(
    machine: Path | str,
    mesh: Path | str,
    *,
    ranks: Sequence[int],
    learn: Sequence[Record] = (),
    tell: Tell | None = None,
    **fields: Any,
) -> list[Prediction]:
    """Predicted times of a case on each number of ranks, by
    simulation on a measured machine.

    machine: file of a profile with a network; ranks: if empty, as many as it has
    learn: runs on this machine, which correct the prices
    fields: of the case, as for `run`

    Raises InputError.
    """
    from fembench.workflows.predict import PredictAsked, predicted

    for count in ranks or [1]:
        case_of(mesh, fields | {"ranks": count})  # refuses what no run would take
    shares = fields.pop("shares", "")
    asked = PredictAsked(str(mesh), machine, ranks, shares, fields, learn=learn)
    with telling(tell):
        return predicted(asked)[1].predictions


def doctor(hostfile: str = "") -> list[Finding]:
    """What this machine and the hosts of its job have, and what is missing."""
    return whole_examination(hostfile)


def case_of(mesh: Path | str, fields: Mapping[str, Any]) -> Case:
    """The case with these fields, the others at their defaults. Raises InputError."""
    unknown = [name for name in fields if name not in FIELDS]
    if unknown:
        raise InputError(f"run: unknown field '{unknown[0]}'; expected one of {', '.join(FIELDS)}")
    return cases.case_of({**fields, "mesh": str(mesh)}, "run")


def _campaign(name: str, repetitions: int, cases: Sequence[Mapping[str, Any]]) -> Campaign:
    tables = [dict(case) if isinstance(case, Mapping) else case for case in cases]
    return convert({"name": name, "repetitions": repetitions, "cases": tables}, Campaign, where="sweep")


def _check_least(least: int, **numbers: float) -> None:
    """Raises InputError for a number that is smaller, not finite, or none."""
    for name, value in numbers.items():
        if not (isinstance(value, int | float) and least <= value < inf):
            raise InputError(f"{name} = {value!r}: expected a number of at least {least}")
