"""Work of dense blocks: why splitting them saves work, unlike sparse storage.

For matrices stored as in Ferreira (2006).

n    equations of the whole    n_i  equations that task i touches, private and shared
dense work of a task ~ n_i^2; of all tasks on one processor ~ sum n_i^2
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class DenseWork(NamedTuple):
    """Work relative to one task's n^2."""

    total: float  # all tasks, on one processor one after another
    largest: float  # the largest task: on processors of their own

    @property
    def gain_on_one(self) -> float:
        """Speedup on one processor, without any parallelism."""
        return 1 / self.total

    @property
    def gain_on_many(self) -> float:
        """Speedup on a processor per task, without communication."""
        return 1 / self.largest


def local_equations(
    elements: Sequence[int], shared: Sequence[int], equations: int
) -> npt.NDArray[np.float64]:
    """(P,) equations that each task touches, estimated from its elements and its shared ones.

    A shared one is taken to be of two tasks; private ones divide like the elements.
    """
    part = np.asarray(elements, float) / sum(elements)
    return part * (equations - sum(shared) / 2) + np.asarray(shared, float)


def dense_work(local: npt.ArrayLike, equations: int) -> DenseWork:
    """Dense work of tasks with (P,) local equations."""
    squares = (np.asarray(local, float) / equations) ** 2
    return DenseWork(float(squares.sum()), float(squares.max()))
