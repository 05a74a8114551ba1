"""The worked examples of Gomes (2014), as statistics."""

import csv
from pathlib import Path

import numpy as np

from fembench.balance.observation import Links, Stats

DATA = Path(__file__).parent.parent / "data"


def job(owner, time, speed=None, **more):
    """Statistics of blocks with these owners and times; equal speeds unless given."""
    owner = np.asarray(owner)
    speed = np.ones(owner.max() + 1) if speed is None else np.asarray(speed, float)
    more.setdefault("size", np.zeros(owner.size))
    more.setdefault("second_per_byte", 1e-6)
    return Stats(owner=owner, time=np.asarray(time, float), speed=speed, **more)


def three_ranks(**more):
    """P = 3, speeds 1, 1, 2; blocks 0 and 1 on rank 0, 2 on rank 1, 3 on rank 2."""
    links = Links(np.array([0, 1]), np.array([3, 2]), np.array([5e4, 1e5]))
    return job(
        [0, 0, 1, 2],
        [3, 2, 3, 1],
        [1, 1, 2],
        size=np.array([1e5, 2e5, 0, 0]),
        links=links,
        communication=0.1,
        **more,
    )


def oracle():
    """Rows of the oracle: (speeds, V, gains in percent by column)."""
    with open(DATA / "seed002_oracle.csv", newline="", encoding="utf-8") as stream:
        return [
            (
                tuple(float(s) for s in row["speeds"].split()),
                int(row["blocks"]),
                {key: float(row[key]) for key in ("optimum", "migbsp", "literal", "amortised")},
            )
            for row in csv.DictReader(stream)
        ]


def integer_optimum(speeds, n_blocks):
    """Gain in percent of the best assignment of equal blocks over the equal one, by its definition:
    least T with sum of floor(T s_j) >= V (block work 1)."""
    speeds = np.asarray(speeds)
    start = np.bincount(np.arange(n_blocks) * speeds.size // n_blocks, minlength=speeds.size) / speeds
    times = sorted({k / s for s in speeds for k in range(1, n_blocks + 1)})
    best = next(t for t in times if np.floor(t * speeds + 1e-9).sum() >= n_blocks)
    return 100 * (1 - best / start.max())
