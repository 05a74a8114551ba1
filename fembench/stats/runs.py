"""Samples that come in runs: the run is the unit.

The sets of one run share a processor speed, a placement in memory and other load on the machine. They show
how well that run is known, but not how much the next one will differ. An interval over pooled sets misses the
true value in half of all cases (docs/statistics.md).
"""

from collections.abc import Sequence
from typing import NamedTuple

from fembench.stats.student import typical_interval
from fembench.stats.summary import LEVEL, Interval, Samples, median, median_interval


class ByRun(NamedTuple):
    """The typical time of several runs of one case."""

    medians: tuple[float, ...]  # of each run
    median: float  # of those medians; nan of no runs
    interval: Interval | None  # of that median over all such runs; None: fewer than three runs
    within: tuple[Interval | None, ...]  # of the median of each run, what this run would show with more sets
    apart: bool  # two runs differ by more than their own sets explain


def by_run(runs: Sequence[Samples], level: float = LEVEL) -> ByRun:
    """The typical time from (n_runs,) series of sets, each of one run.

    `interval` is `typical_interval` of the runs' medians: it assumes that runs are independent of each
    other, and near to lognormal where they are three to five. `within` assumes that the sets of a run are
    independent of each other given the run, and needs six. `apart`: the intervals of two runs are disjoint,
    at the level that `range_level` gives, so equal runs are called apart in less than one case in twenty, for
    any number of runs.
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
    """The level of each of n intervals at which all of them overlap with at least `level` if all is alike.

    Two intervals are disjoint only where their medians differ by more than half of both widths together:
    `level` itself does for five, beyond that 1 - 5 (1 - level) / n, which follows Tukey's studentized range.
    """
    return 1 - (1 - level) * min(1.0, 5 / max(n, 1))
