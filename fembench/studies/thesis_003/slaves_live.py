"""The programs of thesis-003 under MPI: an integral on eight processes, a matrix product on two to eight.

Processes are equal, emulated and dilated so that they fit on the cores that are here (SYNTHETIC). Each
program is calibrated once, with eight processes; every run is predicted from that, in two ways:

graph    the execution graph of the program, what loops do being known
drawn    as thesis-003: a loop without messages goes round as often as an exponential distribution says,
         its mean the turns that are a process's due, its limit all turns (3.2.3; mean = limit: exactly so)
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fembench.base.errors import FembenchError
from fembench.launch.scratch import writable
from fembench.model.engine import SimulationOutcome
from fembench.model.events import simulate_events
from fembench.studies.binaries.binary import Loops
from fembench.studies.experiments import wanted
from fembench.studies.programs import cases
from fembench.studies.programs.cases import both, case_of, kept_record
from fembench.studies.programs.launch import launch
from fembench.studies.programs.record import AppRecord, save_app
from fembench.studies.programs.simulated import machine_from, notice, plan_of

INTEGRAL, PRODUCT = "integral", "product"
CALIBRATED = 8  # processes
SIZE = {INTEGRAL: 16_000_000, PRODUCT: 400}  # trapezoids; rows, as the thesis
SIMULATIONS, SEED = 5, 3  # as the thesis
Floats = npt.NDArray[np.float64]
Say = Callable[[str], None]


@dataclass(frozen=True)
class SlavesEffort:
    """How much is measured."""

    processes: tuple[int, ...]  # of the product
    repetitions: int
    samples: int
    dilate: float  # at least


QUICK = SlavesEffort((2, 4, 8), 5, 4, 100.0)
FULL = SlavesEffort((2, 4, 8, 16), 9, 10, 200.0)


@dataclass(frozen=True)
class SlavesRun:
    """One program on so many processes. Seconds of a process: a slave's computing, the master's end."""

    record: AppRecord
    real: Floats  # (P,) medians
    graph: Floats  # (P,)
    drawn: Floats  # (SIMULATIONS, P)
    turns: Floats  # (P,) of the loop in the first of those, parts of all turns
    messages: tuple[int, ...]  # [process] that it sends, in the graph

    @property
    def name(self) -> str:
        """'product, 4 processes'."""
        return f"{self.record.case.program}, {self.record.case.ranks} processes"


def options_of(program: str, processes: int, cores: int, effort: SlavesEffort) -> argparse.Namespace:
    """What `fembench app` would be asked for."""
    return cases.options_of(
        program,
        (1.0,) * processes,
        cores,
        size=SIZE[program],
        tasks=processes - 1,
        repetitions=effort.repetitions,
        samples=effort.samples,
        idle=1,
        dilate=effort.dilate,
    )


def measure(
    folder: Path,
    effort: SlavesEffort,
    cores: int,
    say: Say,
    *,
    only_kept: bool = False,
    only: Sequence[str] = (),
) -> list[SlavesRun]:
    """The programs wanted; failed runs are reported and left out, kept ones are not repeated."""
    runs = folder / "runs"
    writable(runs)
    runs_of = [(INTEGRAL, CALIBRATED), *((PRODUCT, p) for p in effort.processes)]
    todo = [(program, p) for program, p in runs_of if wanted(program, only)]
    found = []
    for k, (program, processes) in enumerate(todo, 1):
        try:
            live = _one(runs, program, processes, cores, effort, only_kept)
        except FembenchError as error:
            say(f"[{k}/{len(todo)}] {program} on {processes} processes: FAILED: {error}")
            continue
        if live:
            off = 100 * (live.graph.max() / live.real.max() - 1)
            say(f"[{k}/{len(todo)}] {live.name}: {live.real.max():.3f} s, graph {off:+.1f} %")
            found.append(live)
    return found


def _one(
    runs: Path, program: str, processes: int, cores: int, effort: SlavesEffort, only_kept: bool
) -> SlavesRun | None:
    calibrated, ran = (runs / f"{program}-{what}.json" for what in ("calibrated", f"p{processes}"))
    case = case_of(options_of(program, CALIBRATED, cores, effort), None)
    calibration = kept_record(calibrated, case, whatever=only_kept)
    if calibration is None:
        if only_kept:
            return None
        calibration = launch(case, id=calibrated.stem, scratch=runs, calibrate=effort.samples)
        save_app(calibration, calibrated)
    options = options_of(program, processes, cores, effort)
    case = case_of(options, calibration)
    record = kept_record(ran, case, whatever=only_kept)
    if record is None:
        if only_kept:
            return None
        closed, graph = both(case, calibration, options)
        record = launch(case, id=ran.stem, scratch=runs, predicted=closed, simulated=graph)
        save_app(record, ran)
    return live_of(record, calibration)


def live_of(record: AppRecord, calibration: AppRecord) -> SlavesRun:
    """A run beside both simulations of it, which know nothing of the run."""
    case = record.case
    machine, seen = machine_from(calibration, case), notice(case).high
    known = {name: [float(np.median(row)) for row in rows] for name, rows in calibration.samples.items()}
    costs = {name: _of_ranks(each, case.ranks) for name, each in known.items()}
    plain = simulate_events(plan_of(case, costs, machine, True))
    seed = SEED, case.size, case.ranks
    rng, drawn, first = np.random.default_rng(seed), [], np.zeros(case.ranks)
    for k in range(SIMULATIONS):
        part = _turns(rng, case.size, case.ranks)
        first = part if not k else first
        dear = {name: (np.asarray(each) * part * (case.ranks - 1)).tolist() for name, each in costs.items()}
        drawn.append(_per_process(simulate_events(plan_of(case, dear, machine, True)), seen))
    workers = [float(np.median(row)) for row in record.busy[1:]]
    return SlavesRun(
        record=record,
        real=np.array([float(np.median(record.seconds)), *workers]),
        graph=_per_process(plain, seen),
        drawn=np.array(drawn),
        turns=first,
        messages=tuple(plain.messages.tolist()),
    )


def _of_ranks(each: Sequence[float], ranks: int) -> list[float]:
    """[rank] seconds; ranks beyond those calibrated are like the last."""
    return [each[min(r, len(each) - 1)] for r in range(ranks)]


def _turns(rng: np.random.Generator, limit: int, ranks: int) -> Floats:
    """(P,) turns of each slave's loop over all turns; the master has none."""
    loops = Loops(limit / (ranks - 1), limit)
    return np.array([0.0, *(loops.turns(rng) / limit for _ in range(ranks - 1))])


def _per_process(result: SimulationOutcome, seen: float) -> Floats:
    """(P,) the master's end, when it sees the last answer; the slaves' computing."""
    return np.array([result.finish[0] + seen, *result.busy[1:].sum(axis=1)])
