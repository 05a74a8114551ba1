"""Shear-Sort of an N x N matrix (Gomes 2014, algorithms 7 and 8): columns and
rows in turn, rows as a snake.

A block sorts n = N / V columns in even supersteps and n rows in odd ones; then all
lines are all-gathered, as in the thesis. 2 log2 N + 1 supersteps suffice to sort; the
thesis runs N, to get long runs. Its local sort is quicksort in the worst case; ours is
odd-even transposition, which takes N^2 on any data.
"""

from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from fembench.balance.observation import Links
from fembench.ranks.comm import Comm
from fembench_studies.bsp.supersteps import Arrays, gathered

F64 = NDArray[np.float64]


def transposition_sort(rows: F64) -> None:
    """Sort every row in ascending order, in place: N passes of compare and exchange."""
    for k in range(rows.shape[1]):
        left, right = rows[:, k % 2 : -1 : 2], rows[:, k % 2 + 1 :: 2]
        low = np.minimum(left, right)
        np.maximum(left, right, out=right)
        left[:] = low


class ShearSort:
    """The program. `n_blocks` must divide `size`."""

    def __init__(self, size: int, n_blocks: int, supersteps: int = 0, seed: int = 0) -> None:
        if size % n_blocks:
            raise ValueError(f"{size} rows in {n_blocks} blocks: expected a divisor")
        self.size, self.n_blocks = size, n_blocks
        self.rows = size // n_blocks
        self.supersteps = max(supersteps or size, 2 * ceil(log2(size)) + 2)
        self.links = Links.none()  # an all-gather
        self._matrix = np.random.default_rng(seed).random((size, size))

    def make(self, block: int) -> Arrays:
        """The columns that the block sorts first."""
        return {"lines": np.ascontiguousarray(self._matrix[:, self._mine(block)].T)}

    def _mine(self, block: int) -> slice:
        return slice(block * self.rows, (block + 1) * self.rows)

    def compute(self, step: int, block: int, arrays: Arrays) -> None:
        """Sort columns in ascending order; rows ascending if even, descending if odd."""
        lines = arrays["lines"]
        transposition_sort(lines)
        if step % 2:
            odd = (np.arange(block * self.rows, (block + 1) * self.rows) % 2).astype(bool)
            lines[odd] = lines[odd, ::-1]

    def amount(self, arrays: Arrays) -> float:
        """Numbers: each is compared as often."""
        return float(arrays["lines"].size)

    def talk(self, comm: Comm, step: int, blocks: dict[int, Arrays], owner: NDArray[np.int64]) -> None:
        """All-gather the lines; each block then takes its lines in the other direction."""
        other = self._gather(comm, blocks, owner).T  # columns become rows, rows columns
        for i, arrays in blocks.items():
            arrays["lines"][:] = other[self._mine(i)]

    def _gather(self, comm: Comm, blocks: dict[int, Arrays], owner: NDArray[np.int64]) -> F64:
        """(N, N) all lines in order."""
        order = [i for rank in range(comm.size) for i in np.flatnonzero(owner == rank)]
        counts = np.bincount(owner, minlength=comm.size) * self.rows * self.size
        mine = [arrays["lines"] for arrays in blocks.values()]
        out = np.concatenate(mine) if mine else np.empty((0, self.size))
        into = np.empty((self.size, self.size))
        starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
        comm.Allgatherv(out, [into, (counts, starts)])
        matrix = np.empty_like(into)
        for place, i in enumerate(order):
            matrix[self._mine(int(i))] = into[place * self.rows : (place + 1) * self.rows]
        return matrix

    def result(self, comm: Comm, blocks: dict[int, Arrays]) -> NDArray | None:
        """The sorted matrix. Blocks hold its columns after an even number of
        supersteps, else its rows."""
        lines = gathered(comm, {i: arrays["lines"] for i, arrays in blocks.items()})
        return lines if lines is None or self.supersteps % 2 else lines.T
