"""Work of dense blocks, as Ferreira (2006) stores them: unlike sparse storage, splitting saves work.

n    all equations    n_i  equations that task i touches, private and shared
The work of a task is proportional to n_i^2, that of all tasks on one processor to sum n_i^2.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class DenseWork(NamedTuple):
    """Work relative to that of a single task, n^2."""

    total: float  # all tasks on one processor
    largest: float  # the largest task: one processor per task

    @property
    def gain_on_one(self) -> float:
        """Speedup from splitting on one processor, without any parallelism."""
        return 1 / self.total

    @property
    def gain_on_many(self) -> float:
        """Speedup on one processor per task, without communication."""
        return 1 / self.largest


def local_equations(
    elements: Sequence[int], shared: Sequence[int], equations: int
) -> npt.NDArray[np.float64]:
    """(P,) equations that each task touches, estimated from its elements and its shared equations.

    Every shared equation is assumed to belong to two tasks; private ones are divided like the elements.
    """
    part = np.asarray(elements, float) / sum(elements)
    return part * (equations - sum(shared) / 2) + np.asarray(shared, float)


def dense_work(local: npt.ArrayLike, equations: int) -> DenseWork:
    """Dense work of tasks with (P,) local equations."""
    squares = (np.asarray(local, float) / equations) ** 2
    return DenseWork(float(squares.sum()), float(squares.max()))
