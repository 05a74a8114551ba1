"""The applications of Mendes (2004) under MPI on emulated hosts: calibrated, predicted, run.

The printed speeds of hosts and the printed Os, L and Or of messages are emulated on a shorter time scale
(SYNTHETIC). Rings, fork and join are predicted from the same Os, L and Or: they test the executor, not the
model; grid_real runs them with real messages. Runs that already have a record are not repeated.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from fembench.launch.scratch import writable
from fembench_studies.attempts import Attempts, ProgramEffort
from fembench_studies.pamela.program_models import machine_of
from fembench_studies.programs.cases import notice
from fembench_studies.programs.kept import ProgramRuns
from fembench_studies.programs.record import AppCase, AppRecord
from fembench_studies.programs.settings import ProgramSettings, emulated_settings
from fembench_studies.scheduling.execute import Schedule
from fembench_studies.scheduling.task_graph import TaskGraph
from fembench_studies.study import wanted
from fembench_studies.thesis_001.grid_plan import (
    CHILDREN,
    GRAPHS,
    LOCAL,
    METHODS,
    REMOTE,
    SPEEDS,
    TASK,
    Costs,
    Ring,
    platform,
    rings,
)

LEAST = 60.0  # smallest dilation: with less, ranks that compute at the same time would share a core
BYTES = 65536  # real size of a message; its cost is emulated
QUICK = ProgramEffort(5, 6, scale=1.2, real_repetitions=100)  # scale: units of work per second of the source
FULL = ProgramEffort(15, 12, scale=5.0, real_repetitions=300)


@dataclass(frozen=True)
class GridRun:
    """One application. Times are on the thesis' time scale: our seconds divided by `scale`."""

    kind: str  # "ring", "fork", "join", or the graph that was scheduled
    name: str
    record: AppRecord
    scale: float  # seconds here per second of the thesis
    promised: float  # makespan that the method itself predicts, seconds here

    @property
    def measured(self) -> float:
        return float(np.median(self.record.seconds)) / self.scale

    @property
    def expected(self) -> float:
        return self.promised / self.scale

    @property
    def delay(self) -> float:
        """Time in which rank 0 did not compute."""
        return float(np.median(np.array(self.record.seconds) - np.array(self.record.busy[0]))) / self.scale


@dataclass(frozen=True)
class GridBench:
    """The folder, effort and cores of the runs."""

    runs: ProgramRuns
    effort: ProgramEffort
    cores: int

    def calibration(self, name: str, speeds: Sequence[float], seconds: float) -> AppRecord | None:
        """Samples of a task that takes `seconds` in the source, on hosts of these speeds."""
        settings = self.settings("fork", speeds, seconds)
        return self.runs.calibration(f"calibrated-{name}-{settings.size}", settings)

    def settings(self, program: str, speeds: Sequence[float], seconds: float = 1.0) -> ProgramSettings:
        """A program on emulated hosts of these speeds."""
        return emulated_settings(
            program,
            speeds,
            self.cores,
            size=max(1, round(seconds * self.effort.scale)),
            n_bytes=BYTES,
            repetitions=self.effort.repetitions,
            samples=self.effort.samples,
            dilate=LEAST,
        )

    def run(self, name: str, case: AppCase, calibration: AppRecord) -> AppRecord | None:
        """The record of a run, predicted before it starts."""
        return self.runs.run(name, case, calibration, self.settings(case.program, (1.0,)))


def measure(bench: GridBench, attempts: Attempts, only: Sequence[str] = ()) -> list[GridRun]:
    """The requested rings, fork and join with emulated messages, and schedules."""
    writable(bench.runs.folder)
    todo: list[tuple[str, Callable[[], GridRun | None]]] = []
    if wanted("held", only):
        todo += [(f"ring, {ring.name}", functools.partial(_ring, bench, ring)) for ring in rings()]
        todo += [(kind, functools.partial(_delayed, bench, kind)) for kind in ("fork", "join")]
    todo += [
        (f"{graph}, {method}", functools.partial(_scheduled, bench, graph, method))
        for graph in GRAPHS
        if wanted(graph, only)
        for method in METHODS
    ]
    return attempts.each(todo, _line)


def _line(run: GridRun) -> str:
    off, took = 100 * (run.expected / run.measured - 1), float(np.median(run.record.seconds))
    return f"{run.kind}, {run.name}: {took:.3f} s, predicted {run.promised:.3f} s ({off:+.1f} %)"


def unit_of(calibration: AppRecord, rank: int = 0) -> float:
    """Seconds per unit of work on a rank."""
    return float(np.median(calibration.samples["unit"][rank]))


def transfer_of(calibration: AppRecord) -> float:
    """Seconds until the receiver notices a real message."""
    return (machine_of(calibration).message(1, 0, BYTES) + notice(calibration.case)).middle


def scale_of(calibration: AppRecord, seconds: float) -> float:
    """Seconds here per second of the thesis, for a task that takes `seconds` there."""
    return calibration.case.size * unit_of(calibration) / seconds


def _case(bench: GridBench, graph: TaskGraph, calibration: AppRecord) -> AppCase:
    """The graph with the calibrated tasks; hosts, order and costs are still missing."""
    return msgspec.structs.replace(
        calibration.case,
        program=graph.name,
        repetitions=bench.effort.repetitions,
        tasks=graph.n_tasks,
        n_bytes=BYTES,
        edges=tuple((a, b) for a, b, _ in graph.edges),
        order=tuple(range(graph.n_tasks)),
        idle=tuple(t for t, work in enumerate(graph.work) if not work),
    )


def _ring(bench: GridBench, ring: Ring) -> GridRun | None:
    speeds = ring.speeds
    name = "-".join(f"{s:g}" for s in speeds)
    calibration = bench.calibration(f"ring-{name}", speeds, ring.tasks[0])
    if calibration is None:
        return None
    graph = TaskGraph("ring", (1.0, 1.0, 1.0, 0.0), tuple((t, t + 1, float(BYTES)) for t in range(3)))
    scale = scale_of(calibration, ring.tasks[0])
    case = msgspec.structs.replace(
        _case(bench, graph, calibration),
        host=(0, 1, 2, 0),
        costs=tuple(_scaled(c, scale) for c in ring.costs),
    )
    record = bench.run(f"ring-{ring.name.replace(', ', '-').replace(' ', '-')}", case, calibration)
    return GridRun("ring", ring.name, record, scale, _said(record)) if record else None


def _delayed(bench: GridBench, kind: str) -> GridRun | None:
    """Fork or join of ten tasks, eight of them on other hosts, where they compute nothing."""
    calibration = bench.calibration("hosts", SPEEDS, TASK)
    if calibration is None:
        return None
    there, last = range(1, CHILDREN + 1), CHILDREN + 1
    size = float(BYTES)
    if kind == "fork":
        work = (1.0, *(0.0,) * CHILDREN, 1.0)
        edges = tuple((0, t, size) for t in range(1, last + 1))
        host = (0, *there, 0)
    else:
        work = (*(0.0,) * CHILDREN, 1.0, 1.0)
        edges = tuple((t, last, size) for t in range(last))
        host = (*there, 0, 0)
    case, scale = _case(bench, TaskGraph(kind, work, edges), calibration), scale_of(calibration, TASK)
    costs = tuple(_scaled(LOCAL if host[a] == host[b] else REMOTE, scale) for a, b in case.edges)
    case = msgspec.structs.replace(case, host=host, costs=costs)
    record = bench.run(kind, case, calibration)
    return GridRun(kind, f"{CHILDREN} on other hosts", record, scale, _said(record)) if record else None


def _scheduled(bench: GridBench, graph: str, method: str) -> GridRun | None:
    calibration = bench.calibration("hosts", SPEEDS, TASK)
    if calibration is None:
        return None
    made = GRAPHS[graph]()
    case, scale = _case(bench, made, calibration), scale_of(calibration, TASK)
    found = schedule(made, case, calibration, scale, method)
    costs = tuple(_scaled(LOCAL if found.host[a] == found.host[b] else REMOTE, scale) for a, b in case.edges)
    case = msgspec.structs.replace(case, order=found.order, host=found.host, costs=costs)
    record = bench.run(f"{graph}-{method.replace(', ', '-').replace(' ', '-')}", case, calibration)
    return GridRun(graph, method, record, scale, found.expected) if record else None


def schedule(graph: TaskGraph, case: AppCase, calibration: AppRecord, scale: float, method: str) -> Schedule:
    """The method's schedule of the graph on the calibrated hosts."""
    task = tuple(case.size * unit_of(calibration, r) for r in range(case.ranks))
    return METHODS[method](graph, platform(task, scale, transfer_of(calibration)))


def _scaled(costs: Costs, scale: float) -> Costs:
    send, latency, receive = (scale * part for part in costs)
    return send, latency, receive


def _said(record: AppRecord) -> float:
    """The middle of the predicted interval."""
    p = record.predicted
    return (p.low + p.high) / 2 if p else float("nan")
