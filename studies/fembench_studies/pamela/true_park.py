"""The truth of the virtual park: 32 unequal machines, and runs of farms on them.

Nothing here uses the model that predicts. Operations of a task are counted by hand (not
by source.py), its conditionals come out as they do in a run (points and elements are
drawn, primes are those of its range), and the farm is executed task by task (not as
PAMELA text). All parameters are stated here:

    speed       Herai 2005, Table 5.1: nine machines of speed 1, eleven of 0.86, twelve of 0.635
    operation   App. B, machine 1, over the speed, times a factor of each machine and operation (SPREAD)
    in context  an operation costs more or less in a program than alone: a factor of program and operation
    run         a factor of each machine and run (RUN), and of each task (TASK)
    others      quiet times of 1000 s and spells of 30 s on average, exponential; a spell slows by 5 to 20 %
    message     one at a time on a bus: a gamma-distributed latency, and a lognormal time per byte

Factors are lognormal. All randomness comes from numpy's generators; samples
(park.py) have another one.
"""

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

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
SPREAD, CONTEXT, RUN, TASK = 0.02, 0.01, 0.015, 0.02  # deviations of the factors
QUIET, SPELL, MORE = 1000.0, 30.0, (0.05, 0.20)
SHAPE, BYTES = 25.0, 0.1  # of the latency's gamma distribution; deviation of the time per byte
SEED = 2005
CODE = 879.0  # bytes of a kernel's code
Counts = dict[str, float]
TURN: Counts = {"access": 2, "sum_int": 1, "assign_int": 1, "compare": 1}  # of a loop
CHAIN: Counts = {  # a[i] = (a[i] + 1) * 2 / 3 - 4
    "access": 2,
    "array_access": 2,
    "sum_double": 1,
    "mpy_double": 1,
    "div_double": 1,
    "sub_double": 1,
    "assign_double": 1,
}


@dataclass(frozen=True)
class TrueFarm:
    """A program of Herai (2005): `size` is that of all tasks of pi and prim,
    else the rows of a matrix."""

    app: str
    tasks: int
    size: int

    @property
    def message(self) -> float:
        """Bytes of a task's input, and of its result."""
        return 8.0 * self.size**2 if self.app in ("mat", "rand") else 64.0


def cost(machine: int, operation: str) -> float:
    """Seconds of an operation alone; machine 0 is the coordinator."""
    speed = SPEEDS[machine - 1] if machine else 1.0
    return COSTS[operation] / speed * _factor(SPREAD, "machine", machine, operation)


def counts(farm: TrueFarm, task: int, rng: np.random.Generator) -> Counts:
    """Operations of one task in one run."""
    n = farm.size
    if farm.app == "pi":
        each = n // farm.tasks
        point = _sum((1, TURN), (1, {"random_double": 2, "assign_double": 2, "access": 4, "mpy_double": 2}))
        inside: Counts = {"access": 1, "sum_int": 1, "assign_int": 1}
        return _sum(
            (each, point),
            (each, {"sum_double": 1, "compare": 1}),
            (float(rng.binomial(each, math.pi / 4)), inside),
        )
    if farm.app == "prim":
        each = n // farm.tasks
        divide = _sum((1, TURN), (1, {"access": 2, "mod_int": 1, "mpy_int": 1, "assign_int": 1}))
        found = float(_primes(n)[task * each : (task + 1) * each].sum())
        return _sum((each * 25_000.0, divide), (found * 5_000.0, divide))
    product = _sum(
        (1, TURN),
        (1, {"access": 3, "array_access": 2, "mpy_double": 1, "sum_double": 1, "assign_double": 1}),
    )
    squared = (12.0 * n**3, product)
    element = _sum((1, TURN), (1, CHAIN))
    if farm.app == "mat":
        return _sum(squared, (float(n**2), element))
    chosen = float(rng.binomial(n**2, 0.25))
    asked = _sum((1, TURN), (1, {"random_double": 1, "compare": 1}))
    return _sum(squared, (float(n**2), asked), (chosen * 4 * n, element))


def run(farm: TrueFarm, machines: Sequence[int], dealt: Sequence[int], seed: int) -> float:
    """Seconds of a run: the coordinator sends the code and then the inputs in turn,
    workers compute their tasks in the order of arrival, results return as they come."""
    rng = np.random.default_rng([SEED, seed, farm.tasks, farm.size, len(machines)])
    bus = _Bus(rng)
    for _ in machines:
        bus.send(0.0, CODE)
    todo = _in_turn(dealt)
    arrived = [(worker, bus.send(0.0, farm.message)) for worker in todo]
    free = [0.0] * len(machines)
    busy = [_Loaded(rng) for _ in machines]
    ends = []
    for task, (worker, moment) in enumerate(arrived):
        price = counts(farm, task, rng)
        alone = sum(
            k * cost(machines[worker], name) * _factor(CONTEXT, farm.app, name) for name, k in price.items()
        )
        work = alone * busy[worker].usual * float(rng.lognormal(0, TASK))
        free[worker] = busy[worker].after(max(free[worker], moment), work)
        ends.append(free[worker])
    return max(bus.send(end, farm.message) for end in sorted(ends))


class _Bus:
    """Carries one message at a time, in the order of requests."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng, self._free = rng, 0.0

    def send(self, moment: float, n_bytes: float) -> float:
        """When a message that is sent at this moment has arrived."""
        latency = LATENCY * self._rng.gamma(SHAPE) / SHAPE
        travel = PER_BYTE * n_bytes * float(self._rng.lognormal(0, BYTES))
        self._free = max(self._free, moment) + latency + travel
        return self._free


class _Loaded:
    """A machine during one run, with spells of other users."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.usual = float(rng.lognormal(0, RUN))
        self._rng = rng
        self._slow, self._until = 1.0, float(rng.exponential(QUIET))

    def after(self, begin: float, work: float) -> float:
        """When work that begins at this moment, later than all before, is done."""
        now = begin
        while True:
            while self._until <= now:
                self._next()
            room = (self._until - now) / self._slow
            if work <= room:
                return now + work * self._slow
            work, now = work - room, self._until

    def _next(self) -> None:
        spell = self._slow == 1.0
        self._slow = 1.0 + float(self._rng.uniform(*MORE)) if spell else 1.0
        self._until += float(self._rng.exponential(SPELL if spell else QUIET))


def _in_turn(dealt: Sequence[int]) -> Iterator[int]:
    """The worker of each task, one task each in turn."""
    for k in range(max(dealt)):
        yield from (worker for worker, n in enumerate(dealt) if k < n)


def _sum(*parts: tuple[float, Counts]) -> Counts:
    found: Counts = {}
    for times, each in parts:
        for name, k in each.items():
            found[name] = found.get(name, 0.0) + times * k
    return found


@functools.cache
def _factor(deviation: float, *of: object) -> float:
    """A lognormal factor that belongs to something, always the same."""
    key = [SEED, *"/".join(map(str, of)).encode()]
    return float(np.random.default_rng(key).lognormal(0, deviation))


@functools.cache
def _primes(n: int) -> np.ndarray:
    """Whether 0 to n - 1 are prime."""
    prime = np.ones(n, bool)
    prime[:2] = False
    for k in range(2, math.isqrt(n) + 1):
        if prime[k]:
            prime[k * k :: k] = False
    return prime
