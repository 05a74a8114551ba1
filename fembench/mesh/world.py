"""What ranks tell each other about a mesh that is spread over them, for code that does not know MPI."""

from typing import Protocol

import numpy as np


class World(Protocol):
    """All functions are collective, and element-wise over arrays; every rank gets the same result."""

    def sum(self, values: np.ndarray) -> np.ndarray: ...

    def max(self, values: np.ndarray) -> np.ndarray: ...

    def rows(self, own: np.ndarray) -> np.ndarray:
        """Those of all ranks."""
        ...

    def holders(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each number, whether this is the first rank that has it (bool), and how many have it."""
        ...


class Alone:
    """The world of one rank, which holds everything."""

    def sum(self, values: np.ndarray) -> np.ndarray:
        return values

    max = rows = sum

    def holders(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.ones(len(numbers), dtype=bool), np.ones(len(numbers), dtype=np.int64)
