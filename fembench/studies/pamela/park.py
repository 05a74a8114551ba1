"""A virtual park of 32 unequal machines: its samples, its machine model, and runs on it.

The machines are those of Herai 2005, Table 5.1: nine of speed 1, eleven of 0.86, twelve of 0.635, and a
coordinator. Operations cost what App. B gives for machine 1, divided by the speed. In each sample and in each
run the speed of a machine varies with a standard deviation of 3 %; in one of fifty, other users slow it down
by 5 to 20 %. All randomness follows from a seed. Nothing here is measured: its tables are SYNTHETIC.
"""

import functools
import random
from collections.abc import Sequence
from dataclasses import dataclass

from fembench.model.interval import TimeRange
from fembench.studies.pamela.bounds import Compose, Setting, predict
from fembench.studies.pamela.costs import Conditionals
from fembench.studies.pamela.farm_models import VERSIONS, App, FarmApplication, program
from fembench.studies.pamela.history import History, SampleSeries, add, machine_model
from fembench.studies.pamela.interval_score import IntervalScore, score
from fembench.studies.pamela.machine_model import MachineModel, fastest
from fembench.studies.pamela.virtual import execute
from fembench.studies.programs.tasks import deal_tasks

LABEL = "virtual park of 32 machines; no time in it is measured"
SPEEDS = (1.0,) * 9 + (0.86,) * 11 + (0.635,) * 12
COSTS = {  # App. B, machine 1, seconds; compare: its loop_iteration; random_double: our own
    "access": 5.2e-9,
    "array_access": 6.74e-8,
    "assign_double": 1.9e-9,
    "assign_int": 2.2e-9,
    "cast": 7.72e-8,
    "compare": 7.04e-9,
    "div_double": 1.42e-7,
    "mod_int": 5.65e-8,
    "mpy_double": 1.32e-7,
    "mpy_int": 1.08e-8,
    "random_double": 4.7e-7,
    "sub_double": 1.346e-7,
    "sum_double": 1.346e-7,
    "sum_int": 7.4e-9,
}
LATENCY, PER_BYTE = 5e-4, 8e-8  # of a message: 100 Mbit/s
USUAL, RARE, MORE = 0.03, 0.02, (0.05, 0.20)  # deviation; probability and range of a slowdown by other users
NET = 0.2  # largest relative deviation of a message
COUNTS, RUNS, SAMPLES = (2, 4, 8, 16, 32), 4, 50
SEED = 7  # of the runs


def load_factor(draw: random.Random) -> float:
    """The factor by which a machine is slowed in one sample or run."""
    usual = 1 + max(-2 * USUAL, min(draw.gauss(0, USUAL), 2 * USUAL))
    return usual + (draw.uniform(*MORE) if draw.random() < RARE else 0.0)


@functools.cache
def sampled(seed: int = 1) -> History:
    """The park's history, as if from benchmarks on it."""
    draw = random.Random(seed)
    speeds = {0: 1.0, **dict(enumerate(SPEEDS, 1))}
    history = History(factors={p: s for p, s in speeds.items() if p})
    for p, speed in speeds.items():
        factors = [load_factor(draw) for _ in range(SAMPLES)]
        for operation, cost in COSTS.items():
            samples = tuple(cost / speed * f for f in factors)
            history = add(history, SampleSeries(machine=p, operation=operation, samples=samples))
        for n_bytes in (64, 65536) if p else ():
            mean = LATENCY + PER_BYTE * n_bytes
            samples = tuple(mean * draw.uniform(1 - NET, 1 + NET) for _ in range(SAMPLES))
            history = add(history, SampleSeries(machine=p, target=0, n_bytes=n_bytes, samples=samples))
    return history


def truth() -> MachineModel:
    """The values around which samples scatter."""
    speeds = {0: 1.0, **dict(enumerate(SPEEDS, 1))}
    exact = {p: {o: TimeRange(c / s, c / s) for o, c in COSTS.items()} for p, s in speeds.items()}
    sizes = {n: TimeRange(LATENCY + PER_BYTE * n, LATENCY + PER_BYTE * n) for n in (64, 65536)}
    return MachineModel(exact, {(p, 0): sizes for p in speeds if p}, {p: s for p, s in speeds.items() if p})


def setting(made: FarmApplication, machine: MachineModel, count: int, conditionals: Conditionals) -> Setting:
    """A program on the `count` fastest machines, its tasks dealt by Eq. 3.6."""
    chosen = fastest(machine, count)
    dealt = deal_tasks([chosen.factors[p] for p in range(1, count + 1)], made.tasks)
    return Setting(made.model, chosen, count, {1: dict(enumerate(dealt, 1))}, conditionals)


def run(made: FarmApplication, count: int, draw: random.Random) -> float:
    """Seconds of one run."""
    at = setting(made, truth(), count, Conditionals("q", {"": made.q}))
    load = {f"comp_{p}": load_factor(draw) for p in range(1, count + 1)} | {"COORD": load_factor(draw)}

    def drawn(resource: str, modelled: float) -> float:
        return modelled * load.get(resource, draw.uniform(1 - NET, 1 + NET))

    return execute(at, drawn)


@dataclass(frozen=True)
class ParkOutcome:
    """The runs of one version on one number of machines, and their prediction."""

    version: str
    machines: int
    measured: tuple[float, ...]
    predicted: TimeRange

    @property
    def score(self) -> IntervalScore:
        return score(self.measured, [self.predicted] * len(self.measured))


def experiment(app: App, *, with_q: bool = False, compose: Compose = "global") -> list[ParkOutcome]:
    """Four runs of every version on 2 to 32 machines, and predictions from the park's samples."""
    machine = machine_model(sampled())
    found = []
    for version in VERSIONS:
        made = program(app, version)
        decided = Conditionals("q", {"": made.q}) if with_q else Conditionals("worst")
        for count, measured in zip(COUNTS, runs(app, version)):
            predicted = predict(setting(made, machine, count, decided), compose).seconds
            found.append(ParkOutcome(version, count, measured, predicted))
    return found


@functools.cache
def runs(app: App, version: str) -> tuple[tuple[float, ...], ...]:
    """Seconds of four runs on each number of machines; the same for every method of prediction."""
    made, draw = program(app, version), random.Random(f"{SEED} {app} {version}")
    return tuple(tuple(run(made, count, draw) for _ in range(RUNS)) for count in COUNTS)


def pooled(outcomes: Sequence[ParkOutcome]) -> IntervalScore:
    """One score of many outcomes."""
    measured = [x for o in outcomes for x in o.measured]
    return score(measured, [o.predicted for o in outcomes for _ in o.measured])
