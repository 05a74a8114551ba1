"""The farm programs of Herai (2005) under MPI on emulated machines:
calibrated, predicted, run, scored.

The machines have the three speeds of Table 5.1. All ranks are slowed down
(dilated) so that they fit on the cores here (SYNTHETIC). Runs that already
have a record are not repeated.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from fembench.base.units import plural
from fembench.launch.scratch import writable
from fembench.model.closed_form import TimeRange
from fembench_studies.attempts import Attempts, ProgramEffort
from fembench_studies.pamela.interval_score import IntervalScore, score
from fembench_studies.programs.cases import case_of
from fembench_studies.programs.kept import ProgramRuns
from fembench_studies.programs.record import AppRecord
from fembench_studies.programs.settings import ProgramSettings, emulated_settings
from fembench_studies.study import wanted

SPEEDS = (1.0, 0.86, 0.635)
PROGRAMS = {"pi": "pi", "primes": "prim", "matrices": "mat", "partial": "rand"}  # our name -> the source's
SIZES = {"pi": 1.2e8, "primes": 1.2e8, "matrices": 384, "partial": 384}  # about four seconds of computing
TASKS = {"pi": 100, "primes": 100, "matrices": 100, "partial": 100}
QUICK = ProgramEffort(repetitions=5, samples=12, counts=(2, 4), scale=0.5)  # half the work
FULL = ProgramEffort(repetitions=15, samples=20, counts=(2, 4, 8, 15))


@dataclass(frozen=True)
class FarmRun:
    """One program on a number of workers."""

    program: str
    workers: int
    record: AppRecord
    calibration: AppRecord
    predicted: TimeRange

    @property
    def score(self) -> IntervalScore:
        return score(self.record.seconds, [self.predicted] * len(self.record.seconds))


def settings_of(program: str, workers: int, cores: int, effort: ProgramEffort) -> ProgramSettings:
    """A farm on emulated workers. Less work means smaller tasks, or fewer if
    the size of a task is fixed."""
    speeds = sorted((SPEEDS[k % 3] for k in range(workers)), reverse=True)
    smaller = SIZES[program] > 1000
    return emulated_settings(
        program,
        (1.0, *speeds),
        cores,
        size=int(SIZES[program] * (effort.scale if smaller else 1)),
        tasks=round(TASKS[program] * (1 if smaller else effort.scale)),
        repetitions=effort.repetitions,
        samples=effort.samples,
        idle=1,
    )


def measure(
    runs: ProgramRuns, effort: ProgramEffort, cores: int, attempts: Attempts, only: Sequence[str] = ()
) -> list[FarmRun]:
    """Every requested program, on every number of workers."""
    writable(runs.folder)
    todo = [
        (
            f"{program} on {plural(workers, 'worker')}",
            functools.partial(_one, runs, program, workers, cores, effort),
        )
        for program in PROGRAMS
        if wanted(f"mpi-{program}", only)
        for workers in effort.counts
    ]
    return attempts.each(todo, _line)


def _line(run: FarmRun) -> str:
    s = run.score
    name = f"{run.program} on {plural(run.workers, 'worker')}"
    return f"{name}: mean error {100 * s.mean_error:.2f} %, {s.hits} inside"


def _one(runs: ProgramRuns, program: str, workers: int, cores: int, effort: ProgramEffort) -> FarmRun | None:
    settings, name = settings_of(program, workers, cores, effort), f"{program}-w{workers}"
    calibration = runs.calibration(f"{name}-calibrated", settings)
    if calibration is None:
        return None
    record = runs.run(f"{name}-run", case_of(settings, calibration), calibration)
    if record is None or record.predicted is None:
        return None
    return FarmRun(
        program, workers, record, calibration, TimeRange(record.predicted.low, record.predicted.high)
    )
