"""Predictions tested on a virtual park of 32 unequal machines;
its truth is in true_park.py.

The park is sampled as `characterize` would: each sample is the cost of one
operation or message, slowed by an exponentially distributed time of other
processes (NOISE of the mean) and, in one of fifty, by a spell of another user. The
machine model, the speeds W (Eq. 3.5) and the deal of tasks follow from the samples
alone. Samples come from Python's generator, runs from numpy's. Nothing here is
measured: its tables are SYNTHETIC.
"""

import functools
import random
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from fembench.model.closed_form import TimeRange
from fembench_studies.pamela import true_park
from fembench_studies.pamela.bounds import Compose, Setting, predict
from fembench_studies.pamela.costs import Conditionals
from fembench_studies.pamela.farm_models import SIZES, VERSIONS, App, FarmApplication, program
from fembench_studies.pamela.history import History, SampleSeries, add, machine_model, relative_speeds
from fembench_studies.pamela.interval_score import IntervalScore, score
from fembench_studies.pamela.machine_model import MachineModel, fastest
from fembench_studies.pamela.true_park import COSTS, LATENCY, MORE, PER_BYTE, SPEEDS, TrueFarm
from fembench_studies.programs.tasks import deal_tasks

LABEL = "virtual park of 32 machines, in which no time is measured"
NOISE, RARE, NET = 0.03, 0.02, 0.2  # waiting in a sample; probability of a spell; waiting in a message
COUNTS, RUNS, SAMPLES = (2, 4, 8, 16, 32), 4, 50


@functools.cache
def sampled(seed: int = 1) -> History:
    """The park's history, as if from benchmarks on it, with the W that follows."""
    draw = random.Random(seed)
    machines = range(len(SPEEDS) + 1)
    history = History()
    for p in machines:
        slow = [_slowdown(draw) for _ in range(SAMPLES)]
        for operation in COSTS:
            samples = tuple(true_park.cost(p, operation) * s for s in slow)
            history = add(history, SampleSeries(machine=p, operation=operation, samples=samples))
        for n_bytes in (64, 65536) if p else ():
            mean = LATENCY + PER_BYTE * n_bytes
            samples = tuple(mean * _waited(draw, NET) for _ in range(SAMPLES))
            history = add(history, SampleSeries(machine=p, target=0, n_bytes=n_bytes, samples=samples))
    return msgspec.structs.replace(history, factors=relative_speeds(history))


def _slowdown(draw: random.Random) -> float:
    """By what other processes slow down one sample."""
    rare = draw.uniform(*MORE) if draw.random() < RARE else 0.0
    return _waited(draw, NOISE) + rare


def _waited(draw: random.Random, share: float) -> float:
    """A factor of mean 1, of which this share is exponentially distributed waiting."""
    return 1 - share + draw.expovariate(1 / share)


def setting(made: FarmApplication, machine: MachineModel, count: int, conditionals: Conditionals) -> Setting:
    """A program on the `count` fastest machines, its tasks dealt by Eq. 3.6."""
    chosen = fastest(machine, count)
    return Setting(
        made.model, chosen, count, {1: dict(enumerate(_dealt(made.tasks, chosen), 1))}, conditionals
    )


def _dealt(tasks: int, chosen: MachineModel) -> tuple[int, ...]:
    return deal_tasks([chosen.factors[p] for p in sorted(chosen.factors)], tasks)


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
    """Four runs of every version on 2 to 32 machines, and
    predictions from the park's samples."""
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
    """Seconds of four runs on each number of machines; the same for
    every method of prediction."""
    tasks, which = VERSIONS[version]
    farm, machine = TrueFarm(app, tasks, SIZES[app][which]), machine_model(sampled())
    found = []
    for count in COUNTS:
        dealt, machines = _dealt(tasks, fastest(machine, count)), machine.workers[:count]
        found.append(tuple(true_park.run(farm, machines, dealt, seed) for seed in range(RUNS)))
    return tuple(found)


def tasks_of_fastest(version: str, count: int) -> int:
    """Tasks that the fastest of `count` machines is dealt."""
    return _dealt(VERSIONS[version][0], fastest(machine_model(sampled()), count))[0]


def pooled(outcomes: Sequence[ParkOutcome]) -> IntervalScore:
    """One score of many outcomes."""
    measured = [x for o in outcomes for x in o.measured]
    return score(measured, [o.predicted for o in outcomes for _ in o.measured])
