"""What Ferreira (2006) measured, and what follows from it: for his printed
tables and for our records.

    T_h      seconds of host h alone for the whole work; with 1 / sum(1 / T) all hosts end together
    n        all equations
    n_i      those that task i touches, private and shared; the work of its dense block is n_i^2

Each host alone must run as many tasks as both together; otherwise dense
storage makes T meaningless.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from statistics import fmean
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

ONE_HOST = (1, 2, 4, 8)  # tasks
HOSTS = ("node8", "node00")  # the fast one and the slow one


class Phases(NamedTuple):
    """Seconds of one solve to the tolerance; means over tasks, medians
    over sets; nan: not known."""

    partition: float = nan
    assembly: float = nan
    cg: float = nan
    total: float = nan
    communication: float = nan  # inside CG: send, wait, unpack, all-reduce
    send: float = nan
    receive: float = nan  # including waiting for the partner
    iteration: float = nan  # of CG


class PartFacts(NamedTuple):
    """One part of Mesh 3."""

    elements: float
    shared_dofs: float  # free and restrained
    shared_free_dofs: float
    equations: float  # n_i


class DenseWork(NamedTuple):
    """Work relative to that of a single task, n^2."""

    total: float  # all tasks on one processor, whose speedup is at most 1 / total
    largest: float  # the largest task: one processor per task


@dataclass(frozen=True)
class Side:
    """One side of a comparison: the thesis, or our records."""

    at: Callable[
        [str, int, int], Phases
    ]  # times by platform, mesh and tasks; of run 1 to 11: "run", mesh, run
    parts: Mapping[int, Sequence[PartFacts]]  # tasks -> the parts of Mesh 3

    def total(self, platform: str, mesh: int, tasks: int) -> float:
        """Seconds of a case."""
        return self.at(platform, mesh, tasks).total

    def slowness(self, mesh: int, tasks: int) -> float:
        """How many times slower node00 is than node8, each alone."""
        return self.total("node00", mesh, tasks) / self.total("node8", mesh, tasks)

    def mean_slowness(self, tasks: int) -> float:
        """The same, over all meshes."""
        return fmean(self.slowness(mesh, tasks) for mesh in (1, 2, 3))

    def run_speedup(self, host: str, mesh: int, run: int) -> float:
        """Speedup of a run over one task on a host."""
        return self.total(host, mesh, 1) / self.total("run", mesh, run)

    def ideal(self, mesh: int, tasks: int) -> float:
        """Seconds of the work divided between both hosts so that they end
        together, without messages."""
        return ideal_seconds([self.total(host, mesh, tasks) for host in HOSTS])

    def bottleneck(self, mesh: int, on_slow: int, on_fast: int) -> float:
        """Seconds until both hosts have done their tasks, without messages."""
        tasks = on_slow + on_fast
        alone = self.total("node00", mesh, tasks), self.total("node8", mesh, tasks)
        return bottleneck_seconds((on_slow, on_fast), alone)

    def gain(self, platform: str, tasks: int) -> float:
        """Speedup of an iteration of CG over one task, Mesh 3."""
        return self.at(platform, 3, 1).iteration / self.at(platform, 3, tasks).iteration

    def part(self, tasks: int, task: int) -> PartFacts:
        """One of the parts of Mesh 3."""
        return self.parts[tasks][task] if tasks in self.parts else PartFacts(nan, nan, nan, nan)

    def work(self, tasks: int) -> DenseWork:
        """The dense work of Mesh 3 in so many parts."""
        if tasks not in self.parts or 1 not in self.parts:
            return DenseWork(nan, nan)
        return dense_work([part.equations for part in self.parts[tasks]], self.parts[1][0].equations)


def ideal_seconds(alone: Sequence[float]) -> float:
    """1 / sum(1 / T). A host's share of the work, and the most that it
    can save, is that over its T."""
    return 1 / sum(1 / seconds for seconds in alone)


def bottleneck_seconds(tasks: Sequence[int], alone: Sequence[float]) -> float:
    """T = max over hosts of (its tasks / all tasks) x its time alone with all of them."""
    return max(k / sum(tasks) * seconds for k, seconds in zip(tasks, alone))


def dense_work(local: npt.ArrayLike, equations: float) -> DenseWork:
    """Dense work of tasks with (P,) local equations."""
    squares = (np.asarray(local, float) / equations) ** 2
    return DenseWork(float(squares.sum()), float(squares.max()))


def local_equations(
    elements: Sequence[float], shared: Sequence[float], equations: float
) -> npt.NDArray[np.float64]:
    """(P,) equations that each task touches, estimated from its
    elements and its shared equations.

    Every shared equation is assumed to belong to two tasks; private ones are
    divided like the elements.
    """
    part = np.asarray(elements, float) / sum(elements)
    return part * (equations - sum(shared) / 2) + np.asarray(shared, float)
