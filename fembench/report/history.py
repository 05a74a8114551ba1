"""The times of a case over dates: a series of points, and the changes of its level.

A point is the median of the runs of one day and commit: runs of one day share the state
of the hosts. DISTURBED runs count only in a point that has no quiet ones. Runs on
different processors, and with different emulation, are different series.

Changes are found by the package ruptures, which is imported here only.
PELT (Killick, Fearnhead and Eckley, J. Am. Stat. Assoc. 107 (2012) 1590-1598) divides a
series into levels so that the squares of the deviations, in units of the noise, plus a
penalty for each level are least. The noise is the larger of two: that between neighbours,
and that between means of three neighbours, which is larger if neighbours depend on each
other. Values far from their neighbours are moved nearer first: one slow night is no change.
"""

import dataclasses
import datetime
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from fembench.base.arrays import F64
from fembench.base.units import few, plural
from fembench.records.compare import Question, environment_differences
from fembench.records.quiet import foreign
from fembench.records.store import Glance
from fembench.records.times import MOST as LONGEST
from fembench.report.comparison_tables import MOST, OTHER_WORK, more, range_in_words
from fembench.report.runs import case_name
from fembench.report.table import Rows, declared
from fembench.stats.student import Ratio, ratio_unpaired, student_factor
from fembench.stats.summary import LEVEL, Samples, ends_of, median

FEWEST_POINTS = 9  # of a series that is searched
SHORTEST = 3  # points of a level
FAR = 2.0  # noises from the median of five neighbours: a value beyond is moved there
MEAN_TO_SIGMA, MEDIAN_TO_SIGMA = np.sqrt(np.pi / 2), 1.4826  # of the size of normal deviations


def change_points(values: Samples, tests: int = 1) -> list[int]:
    """The indices at which a new level begins, in a series of positive values.

    Assumes deviations of about one size, and little dependence between neighbours. The
    penalty is the square of Student's factor at a level that allows for every place of a
    change and for `tests` series: docs/statistics.md says how rarely a steady series has
    a change. None is found among fewer than nine values; with more, ruptures is needed.
    """
    x = np.log(np.asarray(values, float))
    n = len(x)
    sigma = noise_of(x) if n >= FEWEST_POINTS else 0.0
    if not sigma > 0:
        return []
    from ruptures import KernelCPD

    factor = student_factor(n // 2, 1 - (1 - LEVEL) / (n * tests))
    scaled = _near(x / sigma)[:, None]
    found = KernelCPD(kernel="linear", min_size=SHORTEST).fit(scaled).predict(pen=factor**2)
    return [int(k) for k in found[:-1]]


def noise_of(x: F64) -> float:
    """The standard deviation of single values around a level that may change."""
    means = _windows(x, SHORTEST).mean(axis=1)
    apart = np.abs(means[SHORTEST:] - means[:-SHORTEST])
    of_neighbours = MEAN_TO_SIGMA * np.abs(np.diff(x)).mean() / np.sqrt(2)
    of_means = MEDIAN_TO_SIGMA * np.median(apart) * np.sqrt(SHORTEST / 2)
    return float(max(of_neighbours, of_means))


def _near(x: F64) -> F64:
    """The values, those far from the median of five neighbours moved nearer."""
    middle = np.median(_windows(np.pad(x, 2, mode="reflect"), 5), axis=1)
    return np.asarray(np.clip(x, middle - FAR, middle + FAR))


def _windows(x: F64, n: int) -> F64:
    return np.lib.stride_tricks.sliding_window_view(x, n)


class DayPoint(NamedTuple):
    """The runs of one day and commit."""

    date: datetime.date
    commit: str
    seconds: float  # assembly and cg: median over the runs
    runs: tuple[Glance, ...]  # the quiet ones, if there are any
    left: int  # runs DISTURBED, left out beside quiet ones

    @property
    def disturbed(self) -> bool:
        """Whether other work took CPU time in all of its runs."""
        return disturbed(self.runs[0])


class LevelChange(NamedTuple):
    """A point from which on a case takes another time."""

    at: int  # index of the first point of the new level
    ratio: Ratio  # time after it over time before it, up to the next change
    also: tuple[str, ...]  # what else changed: libraries, hosts, settings


@dataclasses.dataclass(frozen=True, slots=True)
class CaseSeries:
    """A case over dates."""

    name: str
    cpu: str
    points: tuple[DayPoint, ...]  # by date
    changes: tuple[LevelChange, ...]

    @property
    def levels(self) -> list[tuple[int, int]]:
        """(first point, one behind the last) of each level; none of a series too short to search."""
        if len(self.points) < FEWEST_POINTS:
            return []
        ends = [0, *(change.at for change in self.changes), len(self.points)]
        return list(pairwise(ends))

    def told(self, change: LevelChange) -> str:
        """'m · sym · one rank: 5.1 % more time (3.2 to 7.0 % more) since 2026-03-04, commit a to b'."""
        before = self.points[change.at - 1]
        after = self.points[change.at]
        commits = f", commit {before.commit} to {after.commit}" if before.commit != after.commit else ""
        also = f"; also {few(change.also, MOST)}" if change.also else ""
        ends = f" ({range_in_words(change.ratio.interval)})" if change.ratio.interval else ""
        return f"{self.name}: {more(change.ratio.value)} time{ends} since {after.date}{commits}{also}"


def counts(one: Glance) -> bool:
    """Whether a run is a sample: not INVALID, and its timed sets took a time."""
    return one.status != "INVALID" and 0 < one.seconds <= LONGEST


def disturbed(one: Glance) -> bool:
    """Whether other work took CPU time in a run."""
    return any(map(foreign, one.environment.hosts))


def series_of(found: Iterable[Glance]) -> list[CaseSeries]:
    """A series per case, processor and emulation, of all runs that count.

    Raises ModuleNotFoundError without the package ruptures.
    """
    groups: dict[tuple[Question, str, str], dict[tuple[datetime.date, str], list[Glance]]] = {}
    for one in sorted(filter(counts, found), key=lambda g: (g.created, g.id)):
        e = one.environment
        cpu = ", ".join(sorted({e.hosts[i].cpu_model for i in set(e.rank_host)}))
        day = datetime.datetime.fromisoformat(one.created).date()
        kind = one.asked, cpu, e.synthetic
        groups.setdefault(kind, {}).setdefault((day, e.commit[:12]), []).append(one)
    return [_series(cpu, days, len(groups)) for (_, cpu, _), days in groups.items()]


def _series(cpu: str, days: dict[tuple[datetime.date, str], list[Glance]], tests: int) -> CaseSeries:
    points = tuple(_point(day, commit, runs) for (day, commit), runs in days.items())
    values = [point.seconds for point in points]
    found = change_points(values, tests)
    ends = [0, *found, len(points)]
    changes = tuple(
        LevelChange(at, ratio_unpaired(values[at:end], values[begin:at]), _also(points[at - 1], points[at]))
        for begin, at, end in zip(ends, ends[1:], ends[2:])
    )
    first = next(iter(days.values()))[0]
    emulated = f" · SYNTHETIC: {first.environment.synthetic}" if first.environment.synthetic else ""
    return CaseSeries(case_name(first.case) + emulated, cpu, points, changes)


def _point(day: datetime.date, commit: str, runs: Sequence[Glance]) -> DayPoint:
    kept = tuple(run for run in runs if not disturbed(run)) or tuple(runs)
    return DayPoint(day, commit, median([run.seconds for run in kept]), kept, len(runs) - len(kept))


def _also(before: DayPoint, after: DayPoint) -> tuple[str, ...]:
    work = (OTHER_WORK,) * (before.disturbed or after.disturbed)
    sides = ([run.environment for run in point.runs] for point in (before, after))
    return work + tuple(name for name, *_ in environment_differences(*sides) if name != "commit")


def history_conclusions(found: Sequence[CaseSeries], left: int = 0) -> list[str]:
    """The changes, the latest first, in sentences; `left` runs were left out."""
    changes = [(s.points[c.at].date, s.told(c)) for s in found for c in s.changes]
    said = [f"{text}." for _, text in sorted(changes, reverse=True)]
    short = sum(len(s.points) < FEWEST_POINTS for s in found)
    steady = sum(not s.changes for s in found) - short
    said += [f"No change shown in {plural(steady, 'case')}."] if steady else []
    if short:
        single = "; a plot needs 2" if any(len(s.points) < 2 for s in found) else ""
        needed = f"changes are searched for in {FEWEST_POINTS} or more{single}"
        said.append(f"{plural(short, 'case')} with too few points (days and commits): {needed}.")
    said += _doubts([point for s in found for point in s.points])
    said += [f"{plural(left, 'run')} left out: INVALID, or without the times of a set."] if left else []
    return said


def _doubts(points: Sequence[DayPoint]) -> Iterator[str]:
    """How many runs are DISTURBED, and what became of them; how many are PROVISIONAL."""
    runs = [run for point in points for run in point.runs]
    left = sum(point.left for point in points)
    loud = [point for point in points if point.disturbed]
    if n := left + sum(len(point.runs) for point in loud):
        told = [f"{left} left out, beside quiet ones of the same day and commit"] if left else []
        told += [f"{plural(len(loud), 'point')} without a quiet run (hollow in plots)"] if loud else []
        took = f"other work took CPU time in {n} of {plural(left + len(runs), 'run')}"
        yield f"DISTURBED: {took}: {'; '.join(told)}."
    if n := provisional(runs):
        yield f"{n} of {plural(len(runs), 'run')} PROVISIONAL: `fembench check` says why."


def provisional(runs: Iterable[Glance]) -> int:
    """How many runs are PROVISIONAL."""
    return sum(run.status == "PROVISIONAL" for run in runs)


@declared(
    "changes",
    "Changes",
    "Where the level of a series changes: PELT with a penalty for which a steady series shows a change in "
    "less than one of twenty, all cases together. The ratio is the time after the change over that "
    "before it, each up to the next change; above 1, it became slower. The interval is at 95 %. The date, "
    "that of the first point after the change, is an estimate, too: it may be off by a point or so.",
    "case; ?cpu: CPU; date; before after: commits | {0} to {1}; ratio | .3f",
    "low high: 95 % interval | >{0:.3f}–{1:.3f}; n_before n_after: points | >{0}, {1}; also: also changed",
)
def changes_table(found: Sequence[CaseSeries]) -> Rows:
    """A row per change, the latest first."""
    rows = [
        (
            *_who(s, found),
            str(s.points[c.at].date),
            (s.points[c.at - 1].commit, s.points[c.at].commit),
            *(c.ratio.value, ends_of(c.ratio.interval)),
            (c.at - begin, end - c.at),
            ", ".join(c.also),
        )
        for s in found
        for c, (begin, _), (_, end) in zip(s.changes, s.levels, s.levels[1:])
    ]
    return sorted(rows, key=lambda row: row[2], reverse=True)


@declared(
    "history",
    "History",
    "One row per case. A point is the median of the runs of one day and commit; the time is that of assembly "
    "and cg on the slowest rank. 'newest' is the last point, 'level' the median of the points since the last "
    "change, if they are enough to search. INVALID runs do not count, nor do DISTURBED ones beside quiet "
    "ones of the same day and commit.",
    "case; ?cpu: CPU; first: from; last: to; points; runs; newest_s: newest; ?level_s: level; changes",
    "?remarks",
)
def history_table(found: Sequence[CaseSeries]) -> Rows:
    """A row per case."""
    for s in found:
        values = [point.seconds for point in s.points]
        level = median(values[slice(*s.levels[-1])]) if s.levels else None
        dates = str(s.points[0].date), str(s.points[-1].date)
        runs = [run for point in s.points for run in point.runs]
        loud = sum(point.disturbed for point in s.points)
        notes = [f"{plural(loud, 'point')} DISTURBED"] if loud else []
        notes += ["PROVISIONAL"] if provisional(runs) else []
        sizes = len(values), len(runs)
        yield *_who(s, found), *dates, *sizes, values[-1], level, len(s.changes), "; ".join(notes) or None


def _who(one: CaseSeries, everyone: Sequence[CaseSeries]) -> tuple[str, str | None]:
    return one.name, one.cpu if len({s.cpu for s in everyone}) > 1 else None
