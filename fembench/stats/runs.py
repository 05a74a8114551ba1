"""Samples grouped in runs: the run is the unit of the statistics.

The sets of one run share a processor speed, a placement in memory and other load on the host. They show how
precisely the time of that run is known, but not how much the next run will differ. An interval over pooled
sets misses the true value in half of all cases (docs/statistics.md).
"""

from collections.abc import Sequence
from typing import NamedTuple

from fembench.stats.student import typical_interval
from fembench.stats.summary import LEVEL, Interval, Samples, median, median_interval


class ByRun(NamedTuple):
    """The typical time of several runs of one case."""

    medians: tuple[float, ...]  # of each run
    median: float  # of those medians; nan if there are no runs
    interval: Interval | None  # of that median over all such runs; None: fewer than three runs
    within: tuple[Interval | None, ...]  # of each run's median, which more sets of that run would approach
    apart: bool  # two runs differ by more than the spread of their sets explains


def by_run(runs: Sequence[Samples], level: float = LEVEL) -> ByRun:
    """The typical time from n_runs series of sets, one series per run.

    `interval` is `typical_interval` of the runs' medians: it assumes independent runs, and an approximately
    lognormal distribution if there are only three to five. `within` assumes that the sets of a run are
    independent given the run, and needs six of them. `apart`: the intervals of two runs are disjoint at the
    level of `range_level`, so that equal runs are called apart in less than one case in twenty, however many
    runs there are.
    """
    medians = tuple(median(run) for run in runs)
    joint = [found for run in runs if (found := median_interval(run, range_level(len(runs), level)))]
    return ByRun(
        medians=medians,
        median=median(medians),
        interval=typical_interval(medians, level),
        within=tuple(median_interval(run, level) for run in runs),
        apart=bool(joint) and max(i.low for i in joint) > min(i.high for i in joint),
    )


def range_level(n: int, level: float = LEVEL) -> float:
    """The level for each of n intervals such that, for equal runs, all overlap with probability `level`.

    Two intervals are disjoint only if their centres differ by more than the sum of their half-widths.
    Therefore `level` itself suffices for up to five intervals; for more, 1 - 5 (1 - level) / n follows
    Tukey's studentized range.
    """
    return 1 - (1 - level) * min(1.0, 5 / max(n, 1))
