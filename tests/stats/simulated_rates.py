"""How often intervals cover, and how often equal things are called different: simulated, seeds fixed.

`python tests/stats/simulated_rates.py` prints the tables of docs/statistics.md; test_coverage.py holds both
to each other and to the nominal rates.
"""

import functools
import zlib
from typing import NamedTuple

import numpy as np

from fembench.stats.compare import compare_paired, fieller, moments, noise_of_series
from fembench.stats.student import log_ends, range_level, welch_ends
from fembench.stats.summary import LEVEL, drift, order_statistics

TRIALS, SESSIONS = 2000, 500  # of intervals, of verdicts
NS = (3, 4, 5, 6, 8, 12, 20, 50)
PAIRS = NS[3:]
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


def median_ends(x, level=LEVEL):
    """As median_interval, along the last axis."""
    k = order_statistics(x.shape[-1], level)[0]
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


def of_sets_until_precise(name, n):
    """n sets or more, until the interval is within 2 % of the median as rule D1 asks; up to 200."""
    x = INDEPENDENT[name](generator("precise", name, n), (SESSIONS, 200))
    low, high = np.empty(SESSIONS), np.empty(SESSIONS)
    going = np.ones(SESSIONS, bool)
    for count in range(n, x.shape[1] + 1):
        low[going], high[going] = median_ends(x[going, :count])
        middle = np.median(x[going, :count], axis=-1)
        going[going] = np.maximum(high[going] - middle, middle - low[going]) > 0.02 * middle
        if not going.any():
            break
    return holds((low, high), 1.0)


def of_runs(n):
    """n runs of ten sets."""
    return holds(typical_ends(np.median(alike_runs(n), axis=-1)), 1.0)


def of_pooled_sets(n):
    """The same sets taken for independent ones."""
    return holds(median_ends(alike_runs(n).reshape(TRIALS, -1)), 1.0)


@functools.cache
def alike_runs(n):
    return clustered(generator("runs", n), (TRIALS, n))


def of_shares(name, n):
    """Share of the slowest of three ranks, 4 : 2 : 1, from n sets."""
    shares = slowest_share(INDEPENDENT[name](generator("shares", name, n), (TRIALS, 3, n)))
    return holds(typical_ends(shares), exact_share(name))


@functools.cache
def exact_share(name):
    """The median share in very many sets."""
    return np.median(slowest_share(INDEPENDENT[name](generator("exact", name), (50_000, 3, 4))))


def slowest_share(noise):
    """(…, n) from what multiplies the costs (…, 3, n) of three ranks."""
    speeds = np.array([[4.0], [2.0], [1.0]]) / noise
    return speeds[..., 2, :] / speeds.sum(axis=-2)


def of_one_more(name, n):
    """At 95 %, as the others; predictions use 90 %."""
    x = INDEPENDENT[name](generator("next", name, n), (TRIALS, n + 1))
    return holds(log_ends(x[:, :n], more=1), x[:, n])


def of_unpaired(name, n, m):
    rng = generator("unpaired", name, n, m)
    a, b = INDEPENDENT[name](rng, (TRIALS, n)), 0.8 * INDEPENDENT[name](rng, (TRIALS, m))
    return holds(welch_ends(a, b), 1.25)


def of_one_short_series(name, n):
    return of_unpaired(name, 3, n)


def of_equal_series(name, n):
    return of_unpaired(name, n, n)


def disturbed_pairs(name, n, trials):
    """(a, b), both of a pair under one disturbance of this kind and each under a little of its own."""
    rng = generator("pairs", name, n)
    common = INDEPENDENT[name](rng, (trials, n))
    own = np.exp(0.02 * rng.standard_normal((2, trials, n)))
    return common * own[0], common * own[1]


def of_paired(name, n):
    a, b = disturbed_pairs(name, n, TRIALS)
    return holds(median_ends(a / (0.8 * b)), 1.25)


def of_slowing_pairs(reverse, n):
    """A machine that slows by 20 % from first to last; a first, or b first in every second pair."""
    rng = generator("slower", n)
    times = np.linspace(1.0, 1.2, 2 * n) * np.exp(0.005 * rng.standard_normal((TRIALS, 2 * n)))
    ratio = times[:, ::2] / times[:, 1::2]
    swap = (np.arange(n) % 2 == 1) & reverse
    return holds(median_ends(np.where(swap, 1 / ratio, ratio)), 1.0)


def of_captured_gain(name, n):
    """Equal runs 20 s, weighted 14 s, ideal 12 s; each run multiplied by a sample of its own."""
    rng = generator("gain", name, n)
    e, w = (t * (1 + 0.4 * (INDEPENDENT[name](rng, (TRIALS, n)) - 1)) for t in (20.0, 14.0))
    low, high, bounded = fieller(moments(e, w, np.full((TRIALS, 1), 12.0)))
    mean = mean_noise(name)
    return holds((low[bounded], high[bounded]), 6 * mean / (20 * mean - 12))


def of_gain_without_pairs(name, n):
    """The same from n equal, 2 n weighted runs and n ideal ones."""
    rng = generator("no pairs", name, n)
    of = ((20.0, n), (14.0, 2 * n), (12.0, n))
    series = (t * (1 + 0.4 * (INDEPENDENT[name](rng, (TRIALS, k)) - 1)) for t, k in of)
    low, high, bounded = fieller(moments(*series))
    return holds((low[bounded], high[bounded]), 0.75)


@functools.cache
def mean_noise(name):
    return 1 + 0.4 * (INDEPENDENT[name](generator("mean", name), (400_000, 1)).mean() - 1)


def alarms_of_pairs(name, n):
    """Two names for one thing, called different: as `advise` judges, its noise that of the two series."""
    return np.mean([called_different(a, b) for a, b in zip(*disturbed_pairs(name, n, SESSIONS))])


def called_different(a, b):
    low, high = median_ends(a / b)
    if low <= 1 <= high:
        return False
    noise = max(noise_of_series(a), noise_of_series(b))
    return compare_paired(a, b, noise=noise).verdict in ("faster", "slower")


def alarms_of_measuring_on(name, n):
    """The same, measured on by n turns until the interval is within 1.5 %, ten times n at most."""
    a, b = disturbed_pairs(name, 10 * n, SESSIONS)
    turns = turns_until_narrow(a / b, n)
    return np.mean([called_different(a[k, :end], b[k, :end]) for k, end in enumerate(turns)])


def turns_until_narrow(ratios, n):
    """(sessions,) turns after which Comparison.half_width is at most 1.5 %."""
    turns = np.full(len(ratios), ratios.shape[1])
    for end in range(ratios.shape[1] - n, 0, -n):
        low, high = median_ends(ratios[:, :end])
        width = (high - low) / np.exp(np.median(np.log(ratios[:, :end]), axis=1))
        turns[width <= 2 * 0.015] = end
    return turns


def alarms_of_runs(between, n):
    """n runs of ten sets that are called apart; runs differ `between` times as much as sets."""
    rng = generator("apart", n)
    runs = between * rng.standard_normal((SESSIONS, n, 1)) + rng.standard_normal((SESSIONS, n, 10))
    return apart(np.exp(0.02 * runs)).mean()


def apart(runs):
    """As ByRun.apart, of (…, runs, sets)."""
    low, high = median_ends(runs, range_level(runs.shape[-2]))
    return low.max(axis=-1) > high.min(axis=-1)


def alarms_of_drift(spread, n):
    """Steady sets called drifting by rule D3."""
    sets = np.exp(spread * generator("drift", n).standard_normal((SESSIONS, n)))
    return np.mean([abs(drift(x)) > 0.05 for x in sets])


class Row(NamedTuple):
    """One row of a table; `kept` says whether the assumptions hold, and so the nominal rate must."""

    what: str
    samples: str
    rate: object  # n -> share
    ns: tuple[int, ...]
    kept: bool


KINDS = {
    "normal": "normal",
    "lognormal": "lognormal, spread 30 %",
    "floor": "a floor and rare large values",
    "bimodal": "at one of two speeds, 1 : 1.5",
    "drifting": "each near to its neighbour (0.9)",
}


def rows(what, rate, kept, ns=NS, kinds=tuple(KINDS)):
    """A row for each kind of sample."""
    return [Row(what, KINDS[k], functools.partial(rate, k), ns, k in kept) for k in kinds]


UNLIKE = "runs differ 2.5 times as much as sets"
NEARLY_NORMAL = ("normal", "lognormal")
LOGS = tuple(KINDS)[:3]
WIDE = tuple(KINDS)[:4]
FEW, MANY = NS[:3], NS[3:]
UNTIL = NS[5:]
INTERVALS = [
    *rows("`typical_interval`, Student", of_typical, LOGS, FEW),
    *rows("`typical_interval`, order statistics", of_typical, WIDE, MANY),
    *rows(
        "`median_interval`, until ± 2 %", of_sets_until_precise, (), UNTIL, ("normal", "floor", "drifting")
    ),
    Row("`by_run`", UNLIKE, of_runs, NS, True),
    Row("`median_interval` of all sets", "the same", of_pooled_sets, NS, False),
    *rows("`share_intervals`, Student", of_shares, LOGS, FEW),
    *rows("`share_intervals`, order statistics", of_shares, WIDE, MANY),
    *rows("`ratio_unpaired`, n and n", of_equal_series, NEARLY_NORMAL),
    *rows("`ratio_unpaired`, 3 and n", of_one_short_series, NEARLY_NORMAL),
    *rows("`compare_paired`, disturbed alike", of_paired, KINDS, PAIRS),
    Row(
        "`compare_paired`, turns reversed",
        "slowing by 20 %",
        functools.partial(of_slowing_pairs, True),
        PAIRS,
        True,
    ),
    Row(
        "`compare_paired`, same order",
        "slowing by 20 %",
        functools.partial(of_slowing_pairs, False),
        PAIRS,
        False,
    ),
    *rows("`captured_gain`", of_captured_gain, NEARLY_NORMAL),
    *rows("`captured_gain`, no pairs", of_gain_without_pairs, NEARLY_NORMAL, kinds=NEARLY_NORMAL),
    *rows("`next_interval`", of_one_more, NEARLY_NORMAL),
]
ALARMS = [
    *rows("verdict of `tune`", alarms_of_pairs, KINDS, PAIRS),
    *rows("the same, n more until ± 1.5 %", alarms_of_measuring_on, KINDS, PAIRS),
    Row("`by_run`: apart", "n runs alike", functools.partial(alarms_of_runs, 0.0), NS, True),
    Row("`by_run`: apart", UNLIKE, functools.partial(alarms_of_runs, 2.5), NS, False),
    Row("drift > 5 %", "steady sets, spread 2 %", functools.partial(alarms_of_drift, 0.02), NS, False),
    Row("drift > 5 %", "steady sets, spread 5 %", functools.partial(alarms_of_drift, 0.05), NS, False),
]  # fmt: skip


@functools.cache
def simulated():
    """(row, n) -> share, of both tables."""
    return {(row, n): float(row.rate(n)) for row in (*INTERVALS, *ALARMS) for n in row.ns}


def as_markdown(table):
    """The table as docs/statistics.md has it, in per cent."""
    lines = [f"| | samples | {' | '.join(map(str, NS))} | |", "|---|---|" + "---:|" * len(NS) + "---|"]
    for row in table:
        cells = [f"{100 * simulated()[row, n]:.0f}" if n in row.ns else "" for n in NS]
        lines.append(f"| {row.what} | {row.samples} | {' | '.join(cells)} | {'' if row.kept else '✗'} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(as_markdown(INTERVALS), as_markdown(ALARMS), sep="\n\n")
