"""The farm programs of thesis-000 run under MPI on emulated machines: calibrated, predicted, run, scored.

Machines are those of its Tab. 5.1, three speeds; a rank computes at its speed and all are dilated so that
they fit on the cores that are here (SYNTHETIC). What is there already is not measured again.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fembench.base.errors import FembenchError
from fembench.launch.scratch import writable
from fembench.model.interval import TimeRange
from fembench.studies.experiments import wanted
from fembench.studies.pamela.interval_score import IntervalScore, score
from fembench.studies.programs import cases
from fembench.studies.programs.cases import both, case_of, kept_record, predicted
from fembench.studies.programs.launch import launch
from fembench.studies.programs.record import AppPrediction, AppRecord, save_app

SPEEDS = (1.0, 0.86, 0.635)
PROGRAMS = {"pi": "pi", "primes": "prim", "matrices": "mat", "partial": "rand"}  # ours -> the thesis'
SIZES = {"pi": 1.2e8, "primes": 1.2e8, "matrices": 384, "partial": 384}  # of about four seconds of computing
TASKS = {"pi": 100, "primes": 100, "matrices": 100, "partial": 100}
Say = Callable[[str], None]


@dataclass(frozen=True)
class FarmEffort:
    """How much is measured."""

    workers: tuple[int, ...]
    repetitions: int
    samples: int
    part: float  # of the usual work


QUICK = FarmEffort((2, 4), 4, 12, 0.5)
FULL = FarmEffort((2, 4, 8, 15), 4, 20, 1.0)


@dataclass(frozen=True)
class FarmRun:
    """One program on so many workers."""

    program: str
    workers: int
    record: AppRecord
    worst: AppPrediction  # the same run, had conditionals been taken at their worst

    @property
    def informed(self) -> IntervalScore:
        p = self.record.predicted
        return _score(self.record, p) if p else _score(self.record, self.worst)


def _score(record: AppRecord, p: AppPrediction) -> IntervalScore:
    return score(record.seconds, [TimeRange(p.low, p.high)] * len(record.seconds))


def worst_score(live: FarmRun) -> IntervalScore:
    """Of the prediction without Q."""
    return _score(live.record, live.worst)


def options_of(program: str, workers: int, cores: int, effort: FarmEffort) -> argparse.Namespace:
    """What `fembench app` would be asked for."""
    speeds = sorted((SPEEDS[k % 3] for k in range(workers)), reverse=True)
    size = SIZES[program] * (effort.part if SIZES[program] > 1000 else 1)
    tasks = round(TASKS[program] * (effort.part if SIZES[program] <= 1000 else 1))
    return cases.options_of(
        program,
        (1.0, *speeds),
        cores,
        size=int(size),
        tasks=tasks,
        repetitions=effort.repetitions,
        samples=effort.samples,
        idle=1,
    )


def measure(
    folder: Path,
    effort: FarmEffort,
    cores: int,
    say: Say,
    *,
    only_kept: bool = False,
    only: Sequence[str] = (),
) -> list[FarmRun]:
    """Every program wanted on every number of workers; those that failed are told and left out."""
    runs = folder / "runs"
    writable(runs)
    found = []
    for program in (p for p in PROGRAMS if wanted(f"mpi-{p}", only)):
        for workers in effort.workers:
            try:
                live = _one(runs, program, workers, cores, effort, only_kept)
            except FembenchError as error:
                say(f"{program} on {workers} workers: FAILED: {error}")
                continue
            if live:
                s = live.informed
                say(f"{program} on {workers} workers: mean error {100 * s.mean_error:.2f} %, {s.hits} inside")
                found.append(live)
    return found


def _one(
    runs: Path, program: str, workers: int, cores: int, effort: FarmEffort, only_kept: bool
) -> FarmRun | None:
    options = options_of(program, workers, cores, effort)
    paths = [runs / f"{program}-w{workers}-{what}.json" for what in ("calibrated", "run")]
    case = case_of(options, None)
    calibration = kept_record(paths[0], case, whatever=only_kept)
    if calibration is None:
        if only_kept:
            return None
        calibration = launch(case, id=paths[0].stem, scratch=runs, calibrate=options.samples)
        save_app(calibration, paths[0])
    case = case_of(options, calibration)
    record = kept_record(paths[1], case, whatever=only_kept)
    if record is None:
        if only_kept:
            return None
        closed, graph = both(case, calibration, options)
        record = launch(case, id=paths[1].stem, scratch=runs, predicted=closed, simulated=graph)
        save_app(record, paths[1])
    options.policy = "worst"
    return FarmRun(program, workers, record, predicted(record.case, calibration, options))
