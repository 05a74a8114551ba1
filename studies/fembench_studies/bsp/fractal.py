"""Fractal image compression on a ring (Gomes 2014, algorithms 9 and 10;
after Jackson and Mahmoud 1996).

The image is cut into ranges of r x r pixels and overlapping domains of 2r x 2r
with stride r; every block owns some of each. In a superstep a block matches its
guest ranges against its own domains, shrunk to r x r and in eight orientations,
with the best contrast s and brightness o. Then the guests move on to the next
block of the ring. After V supersteps, V being the number of blocks, all ranges
have met all domains and are home.

Error of a range R and a domain D of N = r^2 pixels each (5.1 to 5.3; o by least squares, since 5.4 is
misprinted):
    s = (N sum D R - sum D sum R) / (N sum D^2 - (sum D)^2),  o = (sum R - s sum D) / N
    error = mean (s D + o - R)^2
"""

import numpy as np
from numpy.typing import NDArray

from fembench.balance.observation import Links
from fembench.ranks.comm import Comm
from fembench_studies.bsp.supersteps import Arrays, gathered

F64 = NDArray[np.float64]
ISOMETRIES = 8
BEST = 4  # error, number of the oriented domain, s, o


def picture(height: int, width: int, seed: int = 0) -> F64:
    """(height, width) a synthetic image with values from 0 to
    1: waves, an edge and noise."""
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    noise = np.random.default_rng(seed).normal(0, 0.02, (height, width))
    waves = 0.5 + 0.25 * np.sin(23 * x + 9 * y) * np.cos(17 * y) + 0.2 * (x + 0.4 * y > 0.6)
    return np.clip(waves + noise, 0, 1)


def ranges_of(image: F64, r: int) -> F64:
    """(n, r^2) ranges, row by row."""
    h, w = (n // r for n in image.shape)
    tiles = image[: h * r, : w * r].reshape(h, r, w, r).swapaxes(1, 2)
    return np.ascontiguousarray(tiles.reshape(h * w, r * r))


def domains_of(image: F64, r: int) -> F64:
    """(n, r^2) domains with stride r, row by row, each shrunk to r x r
    by averaging 2 x 2 pixels."""
    h, w = image.shape[0] // r - 1, image.shape[1] // r - 1
    found = np.empty((h * w, r, r))
    for k in range(h * w):
        top, left = (k // w) * r, (k % w) * r
        found[k] = image[top : top + 2 * r, left : left + 2 * r].reshape(r, 2, r, 2).mean(axis=(1, 3))
    return found.reshape(h * w, r * r)


def oriented(domains: F64, r: int) -> F64:
    """(8 n, r^2): each domain in its eight rotations and
    reflections, adjacent to each other."""
    tiles = domains.reshape(-1, r, r)
    turned = [np.rot90(tiles, k, axes=(1, 2)) for k in range(4)]
    all_ = [*turned, *(t[:, :, ::-1] for t in turned)]
    return np.ascontiguousarray(np.stack(all_, axis=1).reshape(-1, r * r))


def match(ranges: F64, domains: F64, best: F64, first: int) -> None:
    """Update `best` (n, 4) in place with better matches in domains (8 m,
    r^2), numbered from `first`."""
    n = ranges.shape[1]
    sum_d, sum_r = domains.sum(axis=1), ranges.sum(axis=1)
    square_d, square_r = (domains**2).sum(axis=1), (ranges**2).sum(axis=1)
    cross = ranges @ domains.T
    spread = n * square_d - sum_d**2
    flat = spread < 1e-12
    s = np.where(flat, 0.0, (n * cross - np.outer(sum_r, sum_d)) / np.where(flat, 1.0, spread))
    o = (sum_r[:, None] - s * sum_d) / n
    error = (
        s * (s * square_d - 2 * cross + 2 * o * sum_d) + o * (n * o - 2 * sum_r[:, None]) + square_r[:, None]
    ) / n
    k = np.argmin(error, axis=1)
    row = np.arange(len(ranges))
    better = error[row, k] < best[:, 0]
    found = np.column_stack((error[row, k], first + k, s[row, k], o[row, k]))
    best[better] = found[better]


class Fractal:
    """The program: in each round the ranges travel once around the ring of blocks."""

    def __init__(
        self, height: int, width: int, r: int, n_blocks: int, rounds: int = 1, seed: int = 0
    ) -> None:
        self.n_blocks, self.r = n_blocks, r
        self.supersteps = n_blocks * rounds
        image = picture(height, width, seed)
        self._ranges = np.array_split(ranges_of(image, r), n_blocks)
        self._domains = np.array_split(domains_of(image, r), n_blocks)
        counts = [len(d) for d in self._domains]
        self._first = ISOMETRIES * np.concatenate(([0], np.cumsum(counts)[:-1]))
        ring = np.arange(n_blocks)
        n_bytes = np.mean([8.0 * (part.size + BEST * len(part)) for part in self._ranges])
        self.links = Links((ring + 1) % n_blocks, ring, np.full(n_blocks, n_bytes))
        self.n_domains, self.n_ranges = sum(counts), sum(map(len, self._ranges))

    def make(self, block: int) -> Arrays:
        """The block's domains, which never leave it, and its
        own ranges as first guests."""
        best = np.zeros((len(self._ranges[block]), BEST))
        best[:, 0] = np.inf
        return {
            "domains": oriented(self._domains[block], self.r),
            "guests": self._ranges[block].copy(),
            "best": best,
        }

    def compute(self, step: int, block: int, arrays: Arrays) -> None:
        """Match the guest ranges against the block's domains."""
        match(arrays["guests"], arrays["domains"], arrays["best"], int(self._first[block]))

    def amount(self, arrays: Arrays) -> float:
        """Pairs of a range and a domain."""
        return float(len(arrays["guests"]) * len(arrays["domains"]))

    def talk(self, comm: Comm, step: int, blocks: dict[int, Arrays], owner: NDArray[np.int64]) -> None:
        """Pass the guest ranges to the next block of the ring."""
        out: list[list] = [[] for _ in range(comm.size)]
        for i, arrays in blocks.items():
            following = (i + 1) % self.n_blocks
            out[int(owner[following])].append((following, arrays["guests"], arrays["best"]))
        for part in comm.alltoall(out):
            for i, guests, best in part:
                blocks[i]["guests"], blocks[i]["best"] = guests, best

    def result(self, comm: Comm, blocks: dict[int, Arrays]) -> NDArray | None:
        """(n_ranges, 4) error, number of the oriented domain, s, o."""
        return gathered(comm, {i: arrays["best"] for i, arrays in blocks.items()})
