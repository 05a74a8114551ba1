"""How often intervals cover, and how often equal things are called different: simulated, seeds fixed.

`python tests/stats/coverage.py` prints the tables of docs/statistics.md; test_coverage.py holds both to each
other and to the nominal rates.
"""

import zlib

import numpy as np

from fembench.stats.gain import fieller, moments
from fembench.stats.student import log_ends, welch_ends
from fembench.stats.summary import order_statistics

TRIALS = 4000
NS = (3, 4, 5, 6, 8, 10, 15, 20, 30, 50)
SPREAD = 0.05


def normal(rng, shape):
    """Median 1."""
    return 1 + SPREAD * rng.standard_normal(shape)


def lognormal(rng, shape):
    """Skewed: median 1."""
    return np.exp(0.3 * rng.standard_normal(shape))


def floor(rng, shape):
    """Skewed also in its logarithm: nothing below the floor, rare large values."""
    return (1 + SPREAD * rng.exponential(size=shape)) / (1 + SPREAD * np.log(2))


def bimodal(rng, shape):
    """Each sample at one of two speeds, 1 : 1.5; its median is taken as the middle between them."""
    return 1.5 ** (rng.integers(0, 2, shape) - 0.5) * np.exp(0.01 * rng.standard_normal(shape))


def drifting(rng, shape):
    """Each sample near to its neighbour (correlation 0.9); median 1 over all time."""
    z = rng.standard_normal(shape)
    for k in range(1, shape[-1]):
        z[..., k] = 0.9 * z[..., k - 1] + np.sqrt(1 - 0.81) * z[..., k]
    return np.exp(SPREAD * z)


def clustered(rng, shape):
    """(…, runs, 10 sets): runs differ 2.5 times as much as the sets of one."""
    runs = 2.5 * rng.standard_normal((*shape, 1))
    return np.exp(0.02 * (runs + rng.standard_normal((*shape, 10))))


INDEPENDENT = {f.__name__: f for f in (normal, lognormal, floor, bimodal, drifting)}


def generator(*name):
    return np.random.default_rng(zlib.crc32(repr(name).encode()))


def median_ends(x):
    """As median_interval, along the last axis."""
    k = order_statistics(x.shape[-1])[0]
    x = np.sort(x, axis=-1)
    return x[..., k - 1], x[..., x.shape[-1] - k]


def typical_ends(x):
    """As typical_interval, along the last axis."""
    return median_ends(x) if x.shape[-1] >= 6 else log_ends(x)


def holds(ends, truth):
    low, high = ends
    return float(((low <= truth) & (truth <= high)).mean())


def of_typical(name, n):
    return holds(typical_ends(INDEPENDENT[name](generator(name, n), (TRIALS, n))), 1.0)


def of_student(name, n):
    return holds(log_ends(INDEPENDENT[name](generator(name, n), (TRIALS, n))), 1.0)


def of_runs(n):
    """n runs of ten sets."""
    medians = np.median(clustered(generator("runs", n), (TRIALS, n)), axis=-1)
    return holds(typical_ends(medians), 1.0)


def of_pooled_sets(n):
    """The same sets taken for independent ones."""
    sets = clustered(generator("runs", n), (TRIALS, n)).reshape(TRIALS, -1)
    return holds(median_ends(sets), 1.0)


def of_bimodal_runs(n):
    """Each run at one of the two speeds."""
    return of_typical("bimodal", n)


def of_shares(name, n):
    """Share of the slowest of three ranks, 4 : 2 : 1, from n sets."""
    speeds = np.array([4.0, 2.0, 1.0])
    cost = INDEPENDENT[name](generator("shares", name, n), (TRIALS, 3, n)).swapaxes(1, 2) / speeds
    shares = 1 / cost / (1 / cost).sum(axis=-1, keepdims=True)
    truth = np.median(_exact_shares(name, speeds))
    return holds(typical_ends(shares[..., 2]), truth)


def _exact_shares(name, speeds):
    """Shares of the slowest rank in very many sets: their median is what the interval is of."""
    cost = INDEPENDENT[name](generator("exact", name), (3, 400_000)).T / speeds
    return (1 / cost / (1 / cost).sum(axis=1, keepdims=True))[:, 2]


def of_unpaired(name, n, m):
    rng = generator("unpaired", name, n, m)
    a, b = INDEPENDENT[name](rng, (TRIALS, n)), 0.8 * INDEPENDENT[name](rng, (TRIALS, m))
    return holds(welch_ends(a, b), 1.25)


def disturbed_pairs(name, n):
    """(a, b), both of a pair under one disturbance of this kind and each under a little of its own."""
    rng = generator("pairs", name, n)
    common = INDEPENDENT[name](rng, (TRIALS, n))
    own = np.exp(0.02 * rng.standard_normal((2, TRIALS, n)))
    return common * own[0], common * own[1]


def of_paired(name, n):
    a, b = disturbed_pairs(name, n)
    return holds(median_ends(a / (0.8 * b)), 1.25)


def steadily_slower(n, reverse):
    """(a, b) in turns on a machine that slows by 20 % from first to last, a first or in every second turn."""
    rng = generator("slower", n)
    times = np.linspace(1.0, 1.2, 2 * n) * np.exp(0.005 * rng.standard_normal((TRIALS, 2 * n)))
    first, second = times[:, ::2], times[:, 1::2]
    swap = (np.arange(n) % 2 == 1) & reverse
    return np.where(swap, second, first), np.where(swap, first, second)


def of_slowing_pairs(n, reverse):
    a, b = steadily_slower(n, reverse)
    return holds(median_ends(a / b), 1.0)


def of_captured_gain(name, n):
    """Equal runs 20 s, weighted 14 s, ideal 12 s; each run multiplied by a sample of its own."""
    rng = generator("gain", name, n)
    e, w = (t * (1 + 0.4 * (INDEPENDENT[name](rng, (TRIALS, n)) - 1)) for t in (20.0, 14.0))
    mean = 1 + 0.4 * (INDEPENDENT[name](generator("mean", name), (400_000, 1)).mean() - 1)
    low, high, bounded = fieller(moments(e, w, np.full((TRIALS, 1), 12.0)))
    truth = 6 * mean / (20 * mean - 12)
    return float(((low <= truth) & (truth <= high))[bounded].mean())
