"""The schedules of Mendes (2004) under MPI on emulated hosts:
calibrated, scheduled, run.

The printed speeds of hosts and the printed Os, L and Or of messages are emulated on a
shorter time scale (SYNTHETIC). Runs that already have a record are not repeated.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from fembench.launch.scratch import writable
from fembench_studies.attempts import Attempts, ProgramEffort
from fembench_studies.pamela.program_models import machine_of
from fembench_studies.programs.cases import notice
from fembench_studies.programs.kept import ProgramRuns
from fembench_studies.programs.record import AppRecord
from fembench_studies.programs.settings import ProgramSettings, emulated_settings
from fembench_studies.scheduling.execute import Schedule
from fembench_studies.scheduling.task_graph import TaskGraph
from fembench_studies.study import wanted
from fembench_studies.thesis_001.grid_plan import GRAPHS, LOCAL, METHODS, REMOTE, SPEEDS, TASK, platform

LEAST = 60.0  # smallest dilation: with less, ranks that compute at the same time would share a core
BYTES = 65536  # real size of a message; its cost is emulated
QUICK = ProgramEffort(5, 6, scale=1.2, real_repetitions=100)  # scale: units of work per second of the source
FULL = ProgramEffort(15, 12, scale=5.0, real_repetitions=300, passes=7)


@dataclass(frozen=True)
class GridRun:
    """One schedule. Times are on the thesis' time scale: our
    seconds divided by `scale`."""

    graph: str
    name: str  # of the method
    record: AppRecord
    calibration: AppRecord
    scale: float  # seconds here per second of the thesis
    promised: float  # makespan that the method itself predicts, seconds here

    @property
    def measured(self) -> float:
        return float(np.median(self.record.seconds)) / self.scale

    @property
    def expected(self) -> float:
        return self.promised / self.scale


@dataclass(frozen=True)
class GridBench:
    """The folder, effort and cores of the runs."""

    runs: ProgramRuns
    effort: ProgramEffort
    cores: int

    def calibration(self) -> AppRecord | None:
        """Samples of a task of the source on its hosts."""
        settings = self.settings()
        return self.runs.calibration(f"calibrated-hosts-{settings.size}", settings)

    def settings(self) -> ProgramSettings:
        """A program on the emulated hosts; a task is as long as one of the
        source on their time scale."""
        return emulated_settings(
            "fork",
            SPEEDS,
            self.cores,
            size=max(1, round(TASK * self.effort.scale)),
            n_bytes=BYTES,
            repetitions=self.effort.repetitions,
            samples=self.effort.samples,
            dilate=LEAST,
        )


def measure(bench: GridBench, attempts: Attempts, only: Sequence[str] = ()) -> list[GridRun]:
    """The schedules of the requested graphs."""
    writable(bench.runs.folder)
    todo = [
        (f"{graph}, {method}", functools.partial(_scheduled, bench, graph, method))
        for graph in GRAPHS
        if wanted(graph, only)
        for method in METHODS
    ]
    return attempts.each(todo, _line)


def _line(run: GridRun) -> str:
    off, took = 100 * (run.expected / run.measured - 1), float(np.median(run.record.seconds))
    return f"{run.graph}, {run.name}: {took:.3f} s, predicted {run.promised:.3f} s ({off:+.1f} %)"


def unit_of(calibration: AppRecord, rank: int = 0) -> float:
    """Seconds per unit of work on a rank."""
    return float(np.median(calibration.samples["unit"][rank]))


def transfer_of(calibration: AppRecord) -> float:
    """Seconds until the receiver notices a real message."""
    return (machine_of(calibration).message(1, 0, BYTES) + notice(calibration.case)).middle


def scale_of(calibration: AppRecord) -> float:
    """Seconds here per second of the thesis."""
    return calibration.case.size * unit_of(calibration) / TASK


def _scheduled(bench: GridBench, graph: str, method: str) -> GridRun | None:
    calibration = bench.calibration()
    if calibration is None:
        return None
    made, scale = GRAPHS[graph](), scale_of(calibration)
    found = schedule(made, calibration, scale, method)
    edges = tuple((a, b) for a, b, _ in made.edges)
    prices = (LOCAL if found.host[a] == found.host[b] else REMOTE for a, b in edges)
    case = msgspec.structs.replace(
        calibration.case,
        program=made.name,
        repetitions=bench.effort.repetitions,
        tasks=made.n_tasks,
        n_bytes=BYTES,
        edges=edges,
        order=found.order,
        host=found.host,
        idle=tuple(t for t, work in enumerate(made.work) if not work),
        costs=tuple((scale * a, scale * b, scale * c) for a, b, c in prices),
    )
    name = f"{graph}-{method.replace(', ', '-').replace(' ', '-')}"
    record = bench.runs.run(name, case, calibration)
    return GridRun(graph, method, record, calibration, scale, found.expected) if record else None


def schedule(graph: TaskGraph, calibration: AppRecord, scale: float, method: str) -> Schedule:
    """The method's schedule of the graph on the calibrated hosts."""
    case = calibration.case
    task = tuple(case.size * unit_of(calibration, r) for r in range(case.ranks))
    return METHODS[method](graph, platform(task, scale, transfer_of(calibration)))
