"""Compare results of two or more machines, dates or versions, case by case; times over dates.

Times over dates come from the records of many runs.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fembench.base.arguments import typed
from fembench.base.errors import InputError
from fembench.base.progress import working
from fembench.base.units import percent, plural
from fembench.host.build import PACKAGE
from fembench.records.store import Glance, distinct, glance, load, load_all, record_paths
from fembench.report.comparison import Compared, SideRuns, compared
from fembench.report.comparison_tables import (
    comparison_table,
    comparison_tables,
    conclusions,
    with_sides,
)
from fembench.report.history import (
    CaseSeries,
    changes_table,
    counts,
    history_conclusions,
    history_table,
    series_of,
)
from fembench.report.outputs import Checked, Findings
from fembench.report.table import Table
from fembench.stats.student import FEWEST
from fembench.workflows.notebook import Runs

if TYPE_CHECKING:
    from fembench.report.plots.canvas import Plot


Results = Runs | Path | str
ENDINGS = (".md", ".json", ".xml", ".html")
SHIPPED = PACKAGE.parent / "results"  # of a clone


class CampaignComparison:
    """Results compared with a base."""

    def __init__(self, found: Sequence[Compared], fail_above: float | None = None) -> None:
        self.found = found  # one per results that are compared with the base
        self.fail_above = fail_above

    def conclusions(self) -> list[str]:
        """What the comparison shows, in sentences: the verdict first."""
        return conclusions(self.found)

    def summary(self) -> Table:
        """One row per case: both times, ratio, interval, verdict, and the phase that explains it."""
        return with_sides(comparison_table(self.found), self.found)

    def tables(self) -> dict[str, Table]:
        """Every table that has rows, by name; that of `summary` first."""
        return {table.name: table for table in comparison_tables(self.found)}

    @property
    def verdicts(self) -> list[str]:
        """Of each results compared with the base: 'slower', 'faster', or why neither."""
        return [one.verdict for one in self.found]

    @cached_property
    def failed(self) -> list[str]:
        """What is slower than `fail_above` allows, a line each; INVALID cases, too."""
        return [f"{test.name}: {test.failure}" for test in self._tests if test.failure]

    def save(self, path: Path | str) -> None:
        """Write everything to a file: .md, .json, .xml (JUnit) or .html (one page).

        Raises InputError for another ending, or if the file cannot be written.
        """
        self.findings.save(path)

    def plots(self) -> "list[Plot]":
        """The ratios of all cases with their intervals, a plot per comparison."""
        from fembench.report.plots.ratios import ratios

        return ratios(self.found)

    @property
    def findings(self) -> Findings:
        """All of it, for a file."""
        base, others = self.found[0].base, [one.other for one in self.found]
        title = f"{', '.join(side.name for side in others)} against {base.name}"
        records = distinct(record for side in (base, *others) for record in side.records)
        tables = list(self.tables().values())
        return Findings(title, self.conclusions(), tables, self.plots, records, self._tests)

    @cached_property
    def _tests(self) -> list[Checked]:
        return [test for one in self.found for test in _tests(one, self.fail_above)]

    def __repr__(self) -> str:
        return repr(self.findings)

    def _repr_html_(self) -> str:
        return self.findings._repr_html_()


@typed
def compare(base: Results, *others: Results, fail_above: float | None = None) -> CampaignComparison:
    """Compare results with a base: the same questions, on other hosts, dates or versions.

    base, others: what `run`, `sweep` or `load` returned, a results folder, the file of a
    record, or the name of results that come with a clone, as "reference"
    fail_above: a fraction, as 0.05; `failed` then lists the cases, and the geometric
    mean, that are slower by more than that with their whole interval

    Raises InputError, also if `fail_above` is given and no case has the runs for an interval.
    """
    if not others:
        raise InputError("compare: one set of results; expected two or more")
    sides = _named([_side(where) for where in (base, *others)])
    found = CampaignComparison([compared(sides[0], one) for one in sides[1:]], fail_above)
    intervals = [pair for one in found.found for pair in one.pairs if pair.ratio.interval]
    if fail_above is not None and not (intervals or found.failed):
        raise InputError(
            f"fail above {percent(fail_above)}: no case can be judged; expected one with {FEWEST} or more "
            "runs on both sides"
        )
    return found


def _side(where: Results) -> SideRuns:
    """The records of a campaign, and its name."""
    if isinstance(where, Runs):
        return SideRuns(where.source or "these runs", where.records)
    path, shipped = Path(where), SHIPPED / where
    if not path.exists() and shipped.is_dir():
        path = shipped
    if not path.exists():
        names = sorted(p.name for p in SHIPPED.glob("*") if (p / "runs").is_dir())
        known = f"; results of this name come with fembench: {', '.join(names)}" if names else ""
        raise InputError(f"{where}: no such file or folder; expected results{known}")
    return SideRuns(str(where).rstrip("/"), [load(path)] if path.is_file() else load_all(path))


def _named(sides: list[SideRuns]) -> list[SideRuns]:
    """The sides with the shortest names that tell them apart: the ends of their paths."""
    short = [Path(side.name).name for side in sides]
    whole = len(set(short)) == len(short) and all(short)
    return [side._replace(name=name) for side, name in zip(sides, short)] if whole else sides


def _tests(one: Compared, limit: float | None) -> list[Checked]:
    """A test per case and one of the mean: failed if slower than allowed, or INVALID."""
    slow = dict(one.slower_than(limit)) if limit is not None else {}
    group = f"{one.other.name} against {one.base.name}"
    judged = [(p.b.name, p.ratio, p.verdict, p.whole.b) for p in one.pairs]
    judged += [("the geometric mean", one.ratio, one.verdict, 0.0)] if len(one.pairs) > 1 else []
    made = []
    for name, ratio, verdict, seconds in judged:
        failure = f"slower by {percent(slow[name] - 1)} or more" if name in slow else ""
        made.append(Checked(group, name, failure, "" if ratio.interval else verdict, seconds))
    for left in one.left:
        wrong = limit is not None and "INVALID" in left.reason and left.where == one.other.name
        reason = f"{left.where}: {left.reason}"
        made.append(Checked(group, left.case.name, reason * wrong, reason * (not wrong)))
    return made


HISTORY_ENDINGS = (".md", ".json", ".html")


class CampaignHistory:
    """Cases over dates."""

    def __init__(self, series: Sequence[CaseSeries], left: int = 0) -> None:
        self.series = series  # one per case and processor
        self.left = left  # runs that do not count

    def conclusions(self) -> list[str]:
        """Every change in a sentence, the latest first; how many cases have none."""
        return history_conclusions(self.series, self.left)

    def summary(self) -> Table:
        """One row per case: its dates, points and runs, its time now, how often it changed."""
        return history_table(self.series)

    def tables(self) -> dict[str, Table]:
        """Every table that has rows, by name: `changes`, that of `summary`."""
        made = (changes_table(self.series), self.summary())
        return {table.name: table for table in made if table.rows}

    def save(self, path: Path | str) -> None:
        """Write everything to a file: .md, .json or .html (one page).

        Raises InputError for another ending, or if the file cannot be written.
        """
        self.findings.save(path)

    def plots(self) -> "list[Plot]":
        """The times of each case against dates, with their levels."""
        from fembench.report.plots.ratios import histories

        return histories(self.series)

    @property
    def findings(self) -> Findings:
        """All of it, for a file."""
        title = f"History of {plural(len(self.series), 'case')}"
        return Findings(title, self.conclusions(), list(self.tables().values()), self.plots)

    def __repr__(self) -> str:
        return repr(self.findings)

    def _repr_html_(self) -> str:
        return self.findings._repr_html_()


@typed
def history(*folders: Path | str) -> CampaignHistory:
    """How the times of cases changed over dates, and since when.

    folders: results folders, or folders of results folders

    Raises InputError if there is no record, ModuleNotFoundError without the package ruptures.
    """
    if not folders:
        raise InputError("history: no folder; expected one or more")
    with working("history: reading records"):
        found = {(one.id, one.created): one for folder in folders for one in _glances(Path(folder))}
    kept = list(filter(counts, found.values()))
    return CampaignHistory(series_of(kept), len(found) - len(kept))


def _glances(folder: Path) -> Iterator[Glance]:
    """Each record of a results folder or, if it is none, of those in it. Raises InputError."""
    if not folder.is_dir():
        raise InputError(f"{folder}: expected a folder of results, or of results folders")
    paths = record_paths(folder) or [p for below in sorted(folder.iterdir()) for p in _below(below)]
    if not paths:
        raise InputError(f"{folder}: no records found; expected runs/*.json, or results folders")
    yield from map(glance, paths)


def _below(folder: Path) -> list[Path]:
    return record_paths(folder) if (folder / "runs").is_dir() else []
