"""The functions of `import fembench`: what the verbs do, from Python."""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fembench.base.config import convert
from fembench.base.errors import InputError, RunFailedError
from fembench.base.interpreter import interpreter
from fembench.base.progress import telling
from fembench.bench.campaign_file import Campaign
from fembench.records.prediction import Prediction
from fembench.records.profile import Profile
from fembench.records.record import Record
from fembench.records.weights import Weights, save_weights
from fembench.weights.make import by_time
from fembench.workflows.cases import case_asked, check_least
from fembench.workflows.characterize import characterized, ranks_of_job
from fembench.workflows.doctor import doctor
from fembench.workflows.notebook import Runs
from fembench.workflows.run import run
from fembench.workflows.sweep import swept
from fembench.workflows.sweep_source import SweepAsked
from fembench.workflows.tune import tune

__all__ = ["doctor", "machine", "page", "predict", "run", "shares", "sweep", "tune", "verb"]

Tell = Callable[[str], None]


def verb(*words: str) -> str:
    """What `fembench WORDS` prints, for a verb without a function; it runs in a process of its own.

    words: the verb, then its options, as in "timers", "--json"

    Raises RunFailedError, with what it said last, if its exit status is not 0.
    """
    line = [*interpreter(), "-m", "fembench", *words]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise RunFailedError(f"fembench {words[0]}: {lines[-1].removeprefix('fembench: ')}")
    return done.stdout


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
    check_least(0, minutes=minutes)
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
    """Build the report of a results folder; returns the path of its index.html. Raises InputError.

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


def predict(
    machine: Path | str,
    mesh: Path | str,
    *,
    ranks: Sequence[int],
    learn: Sequence[Record] = (),
    tell: Tell | None = None,
    **fields: Any,
) -> list[Prediction]:
    """Predict the times of a case on each number of ranks, by simulation on a measured machine.

    machine: file of a profile with a network; ranks: if empty, as many as it has
    learn: runs on this machine, which correct the prices
    fields: of the case, as for `run`

    Raises InputError.
    """
    from fembench.workflows.predict import PredictAsked, predicted

    for count in ranks or [1]:
        case_asked(mesh, fields | {"ranks": count})  # refuses what no run would take
    shares = fields.pop("shares", "")
    asked = PredictAsked(str(mesh), machine, ranks, shares, fields, learn=learn)
    with telling(tell):
        return predicted(asked)[1].predictions


def _campaign(name: str, repetitions: int, cases: Sequence[Mapping[str, Any]]) -> Campaign:
    tables = [dict(case) if isinstance(case, Mapping) else case for case in cases]
    return convert({"name": name, "repetitions": repetitions, "cases": tables}, Campaign, where="sweep")
