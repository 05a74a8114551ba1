"""The programs of Calzeta and de Souza (2008) under MPI: an
integral, and a matrix product.

Processes are equal, emulated and dilated so that they fit on the cores here
(SYNTHETIC). Every program is calibrated with as many processes as run: on two cores, two of them
compute a row of the product in 33 µs, but four and eight, which share cores, in 35. A run is
predicted from its calibration in two ways:

graph    the execution graph, with the true number of iterations of every loop
drawn    as in the source: a loop without messages makes a random number of iterations, exponentially
         distributed with the even share as its mean, and limited to all iterations (3.2.3; if mean = limit,
         exactly that number)
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fembench.launch.scratch import writable
from fembench.model.engine import SimulationOutcome
from fembench.model.events import simulate_events
from fembench_studies.attempts import Attempts, ProgramEffort
from fembench_studies.binaries.given import Loops
from fembench_studies.programs.cases import case_of, notice
from fembench_studies.programs.kept import ProgramRuns
from fembench_studies.programs.record import AppRecord
from fembench_studies.programs.settings import ProgramSettings, emulated_settings
from fembench_studies.programs.simulated import machine_from, plan_of
from fembench_studies.study import wanted

INTEGRAL, PRODUCT = "integral", "product"
OF_INTEGRAL = 8  # processes
SIZE = {INTEGRAL: 16_000_000, PRODUCT: 400}  # trapezoids; rows, as in the thesis
SIMULATIONS, SEED = 5, 3  # number of simulations as in the thesis
Floats = npt.NDArray[np.float64]


QUICK = ProgramEffort(repetitions=5, samples=4, counts=(2, 4, 8), dilate=100.0)  # counts: of the product
FULL = ProgramEffort(repetitions=15, samples=10, counts=(2, 4, 8, 16), dilate=200.0)


@dataclass(frozen=True)
class SlavesRun:
    """One program on P processes. Seconds per process: computing of
    a slave, end of the master."""

    record: AppRecord
    calibration: AppRecord
    real: Floats  # (P,) medians
    graph: Floats  # (P,)
    drawn: Floats  # (SIMULATIONS, P)
    turns: Floats  # (P,) iterations of the loop in the first of those, as fractions of all
    messages: tuple[int, ...]  # [process] number sent, in the graph

    @property
    def repetitions(self) -> list[Floats]:
        """(P,) seconds per process, for each repetition."""
        return [np.array([end, *busy]) for end, *busy in zip(self.record.seconds, *self.record.busy[1:])]

    @property
    def name(self) -> str:
        """'product, 4 processes'."""
        return f"{self.record.case.program}, {self.record.case.ranks} processes"


def settings_of(program: str, processes: int, cores: int, effort: ProgramEffort) -> ProgramSettings:
    """A master and equal slaves, one task each."""
    return emulated_settings(
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
    runs: ProgramRuns, effort: ProgramEffort, cores: int, attempts: Attempts, only: Sequence[str] = ()
) -> list[SlavesRun]:
    """The requested programs, calibrated, predicted and run."""
    writable(runs.folder)
    runs_of = [(INTEGRAL, OF_INTEGRAL), *((PRODUCT, p) for p in effort.counts)]
    todo = [
        (f"{program} on {p} processes", functools.partial(_one, runs, program, p, cores, effort))
        for program, p in runs_of
        if wanted(program, only)
    ]
    return attempts.each(todo, _line)


def _line(live: SlavesRun) -> str:
    off = 100 * (live.graph.max() / live.real.max() - 1)
    return f"{live.name}: {live.real.max():.3f} s, graph {off:+.1f} %"


def _one(
    runs: ProgramRuns, program: str, processes: int, cores: int, effort: ProgramEffort
) -> SlavesRun | None:
    settings, name = settings_of(program, processes, cores, effort), f"{program}-p{processes}"
    calibration = runs.calibration(f"{name}-calibrated", settings)
    if calibration is None:
        return None
    record = runs.run(name, case_of(settings, calibration), calibration)
    return live_of(record, calibration) if record else None


def live_of(record: AppRecord, calibration: AppRecord) -> SlavesRun:
    """A run, and both of its simulations, which use only the calibration."""
    case = record.case
    machine, seen = machine_from(calibration, case), notice(case).high
    known = {name: [float(np.median(row)) for row in rows] for name, rows in calibration.samples.items()}
    costs = {name: _of_ranks(each, case.ranks) for name, each in known.items()}
    plain = simulate_events(plan_of(case, costs, machine))
    seed = SEED, case.size, case.ranks
    rng, drawn, first = np.random.default_rng(seed), [], np.zeros(case.ranks)
    for k in range(SIMULATIONS):
        part = _turns(rng, case.size, case.ranks)
        first = part if not k else first
        dear = {name: (np.asarray(each) * part * (case.ranks - 1)).tolist() for name, each in costs.items()}
        drawn.append(_per_process(simulate_events(plan_of(case, dear, machine)), seen))
    workers = [float(np.median(row)) for row in record.busy[1:]]
    return SlavesRun(
        record=record,
        calibration=calibration,
        real=np.array([float(np.median(record.seconds)), *workers]),
        graph=_per_process(plain, seen),
        drawn=np.array(drawn),
        turns=first,
        messages=tuple(plain.messages.tolist()),
    )


def _of_ranks(each: Sequence[float], ranks: int) -> list[float]:
    """[rank] seconds; ranks beyond the calibrated ones are assumed to equal the last."""
    return [each[min(r, len(each) - 1)] for r in range(ranks)]


def _turns(rng: np.random.Generator, limit: int, ranks: int) -> Floats:
    """(P,) random iterations of each slave's loop, as fractions
    of all; the master has none."""
    loops = Loops(limit / (ranks - 1), limit)
    return np.array([0.0, *(loops.turns(rng) / limit for _ in range(ranks - 1))])


def _per_process(result: SimulationOutcome, seen: float) -> Floats:
    """(P,) seconds until the master notices the last answer;
    computing time of each slave."""
    return np.array([result.finish[0] + seen, *result.busy[1:].sum(axis=1)])
