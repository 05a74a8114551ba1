"""The plain twins of the kernels that serve several blocks on one rank."""

import time
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Index = NDArray[np.int32]


class _Values:
    """Values of three entries, wherever they lie: value k is that of node node[k] in vectors[vector[k]]."""

    def __init__(self, vectors: Sequence[Vector], vector: Index, node: Index) -> None:
        sizes = np.array([v.size // 3 for v in vectors], np.int64)
        if node.size and not 0 <= vector.min() <= vector.max() < sizes.size:
            raise ValueError("vector: outside the list of vectors")
        if node.size and not (node.min() >= 0 and (node < sizes[vector]).all()):
            raise ValueError("node: outside its vector")
        self.vectors, self.vector, self.node = [v.reshape(-1, 3) for v in vectors], vector, node

    def _get(self, which: NDArray[np.intp]) -> Vector:
        """(n, 3) the values of that number."""
        values = np.empty((which.size, 3))
        for k, v in enumerate(self.vectors):
            here = self.vector[which] == k
            values[here] = v[self.node[which[here]]]
        return values

    def _put(self, which: NDArray[np.intp], values: Vector) -> None:
        for k, v in enumerate(self.vectors):
            here = self.vector[which] == k
            v[self.node[which[here]]] = values[here]


class Gather(_Values):
    """buffer (3 n,) = the n values."""

    def __init__(self, vectors: Sequence[Vector], vector: Index, node: Index, buffer: Vector) -> None:
        super().__init__(vectors, vector, node)
        if buffer.size != 3 * node.size:
            raise ValueError(f"buffer: expected {3 * node.size} items, got {buffer.size}")
        self.buffer = buffer

    def run(self) -> None:
        """Gather."""
        self.buffer[:] = self._get(np.arange(self.node.size)).reshape(-1)


class SharedSum(_Values):
    """The values [ends[g], ends[g + 1]) all become their sum, added up in this order; ends (groups + 1,)."""

    def __init__(
        self, vectors: Sequence[Vector], vector: Index, node: Index, ends: NDArray[np.int64]
    ) -> None:
        super().__init__(vectors, vector, node)
        if not ends.size or ends[0] != 0 or ends[-1] != node.size or (np.diff(ends) < 0).any():
            raise ValueError("ends: expected an ascending list from 0 to the number of values")
        self.first, self.count = ends[:-1], np.diff(ends)

    def run(self) -> None:
        """Sum, and store the sum everywhere."""
        sums = np.zeros((self.count.size, 3))
        rounds = range(int(self.count.max(initial=0)))
        for k in rounds:
            more = self.count > k
            sums[more] += self._get(self.first[more] + k)
        for k in rounds:
            more = self.count > k
            self._put(self.first[more] + k, sums[more])


class Blocks:
    """The blocks of one rank: each call does one line of the iteration for all blocks.

    Block k of the lists has the index places[k] in tau (V,), which holds its part of d . q, and in rho, which
    holds that of r . r (V,), followed by that of r . M r if it is (2 V,). All other entries are zeroed. spent
    (V,), if given, accumulates the seconds of processor time of each block's products.
    """

    def __init__(
        self,
        places: NDArray[np.int64],
        products: Sequence[Any],
        vectors: Sequence[Any],
        tau: "array[float]",
        rho: "array[float]",
        spent: Vector | None = None,
    ) -> None:
        self.places, self.products, self.vectors = places.tolist(), list(products), list(vectors)
        self.tau, self.rho, self.spent, self.n_all = tau, rho, spent, len(tau)
        if not len(self.places) == len(self.products) == len(self.vectors):
            raise ValueError("places, products, vectors: expected one of each per block")
        if not all(0 <= place < self.n_all for place in self.places):
            raise ValueError("places: outside tau")
        if len(rho) not in (self.n_all, 2 * self.n_all):
            raise ValueError("rho: expected one number per block, or two")

    def interface(self) -> None:
        """q of all interfaces; clears tau."""
        self.tau[:] = array("d", bytes(8 * self.n_all))
        self._multiply([product.interface for product in self.products])

    def interior(self) -> None:
        """q of all interiors."""
        self._multiply([product.interior for product in self.products])

    def _multiply(self, calls: list[Any]) -> None:
        for place, call in zip(self.places, calls):
            before = time.thread_time()
            part = call()
            if part is not None:
                self.tau[place] += part
            if self.spent is not None:
                self.spent[place] += time.thread_time() - before

    def dot(self) -> None:
        """d . q, for products that do not return it."""
        for place, vectors in zip(self.places, self.vectors):
            self.tau[place] = vectors.dot_dq()

    def direction(self, beta: float) -> None:
        """d = M r + beta d."""
        for vectors in self.vectors:
            vectors.direction(beta)

    def step(self, alpha: float) -> None:
        """x += alpha d; r -= alpha q; r . r, and r . M r if rho has room for it."""
        self.rho[:] = array("d", bytes(8 * len(self.rho)))
        for place, vectors in zip(self.places, self.vectors):
            if len(self.rho) == self.n_all:
                self.rho[place] = vectors.step(alpha)
            else:
                self.rho[place], self.rho[self.n_all + place] = vectors.step_jacobi(alpha)
