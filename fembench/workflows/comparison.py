"""Compare results of two or more machines, dates or versions, case by case; times over dates.

Times over dates come from the records of many runs.
"""

from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from fembench.base.arguments import typed
from fembench.base.errors import InputError
from fembench.base.progress import working
from fembench.base.units import few, percent, plural
from fembench.host.build import PACKAGE
from fembench.records.store import (
    Glance,
    glance,
    glance_of,
    load,
    load_all,
    record_paths,
    run_paths,
)
from fembench.report.comparison import MEAN, Compared, SideRuns, compared
from fembench.report.comparison_tables import comparison_tables, conclusions
from fembench.report.history import (
    CaseSeries,
    changes_table,
    counts,
    history_conclusions,
    history_table,
    series_of,
)
from fembench.report.outputs import Checked, Findings
from fembench.stats.student import FEWEST
from fembench.workflows.notebook import Runs

if TYPE_CHECKING:
    from fembench.report.plots.canvas import Plot


Results = Runs | Path | str
SHIPPED = PACKAGE.parent / "results"  # of a clone
UNJUDGED = (
    f"no case can be judged; expected one with {FEWEST} or more runs on both sides that are not DISTURBED"
)


@typed
def compare(base: Results, *others: Results, fail_above: float | None = None) -> Findings[Compared]:
    """Compare results with a base: the same questions, on other hosts, dates or versions.

    base, others: what `run`, `sweep` or `load` returned, a results folder, the file of a
    record, or the name of results that come with a clone, as "reference"
    fail_above: a fraction, as 0.05; `failed` then lists the cases, and the geometric
    mean, that are slower by more than that with their whole interval, and the results of
    which no case has the runs for an interval: then `judged` is False

    `found` has a `verdict` per comparison: 'slower', 'faster', or why neither. Raises
    InputError.
    """
    if fail_above is not None and not 0 <= fail_above < 1:
        raise InputError(f"compare: fail_above = {fail_above:g}: expected a fraction, such as 0.05 for 5 %")
    if not others:
        raise InputError("compare: one set of results; expected two or more")
    sides = _named([_side(where) for where in (base, *others)])
    runs = [{record.id: record for record in side.records} for side in sides]
    if runs[0] in runs[1:]:
        other = sides[runs.index(runs[0], 1)].name
        raise InputError(f"{other}: the same runs as {sides[0].name}; expected other ones")
    found = [compared(sides[0], one) for one in sides[1:]]
    tests = [test for one in found for test in _tests(one, fail_above)]
    said = conclusions(found)
    if fail_above is not None:
        said.insert(0, _kept(fail_above, tests))
    title = f"{', '.join(side.name for side in sides[1:])} against {sides[0].name}"
    records = {id(r): r for one in found for pair in one.pairs for case in pair[:2] for r in case.records}
    tables = comparison_tables(found)
    return Findings(title, found, said, tables[0], tables, _ratios, list(records.values()), tests)


def _kept(limit: float, tests: Sequence[Checked]) -> str:
    """Whether anything is slower than the limit allows, in a sentence."""
    wrong = [f"{test.name}: {test.failure}" for test in tests if test.failure]
    if wrong:
        return f"FAILED above {percent(limit)}: {'; '.join(wrong)}."
    unjudged = [test.group for test in tests if test.error]
    if unjudged:
        return f"Not judged above {percent(limit)}: {', '.join(unjudged)}: {UNJUDGED}."
    left = sum(bool(test.skipped) and test.name != MEAN for test in tests)
    more = f"; {plural(left, 'case')} not judged" if left else ""
    return f"Passed: nothing is slower by more than {percent(limit)} with its whole interval{more}."


def _ratios(found: Sequence[Compared]) -> "list[Plot]":
    from fembench.report.plots.ratios import ratios

    return ratios(found)


def _side(where: Results) -> SideRuns:
    """The records of a campaign, and its name."""
    if isinstance(where, Runs):
        if not where.records:
            raise InputError("compare of no runs: expected at least one run")
        return SideRuns(where.source or "these runs", where.records, record=Path(where.source).is_file())
    path, shipped = Path(where), SHIPPED / where
    if not path.exists() and shipped.is_dir():
        path = shipped
    if not path.exists():
        names = sorted(p.name for p in SHIPPED.glob("*") if (p / "runs").is_dir())
        known = f"; by name, from {SHIPPED}: {few(names, 6)}" if names else ""
        raise InputError(f"{where}: no such file or folder; expected results{known}")
    if path.is_file():
        return SideRuns(str(where), [load(path)], record=True)
    campaign = path / "campaign.toml"
    return SideRuns(str(where).rstrip("/"), load_all(path), str(campaign) if campaign.is_file() else "")


def _named(sides: list[SideRuns]) -> list[SideRuns]:
    """The sides with the shortest names that tell them apart: the ends of their paths."""
    short = [Path(side.name).name for side in sides]
    whole = len(set(short)) == len(short) and all(short)
    return [side._replace(name=name) for side, name in zip(sides, short)] if whole else sides


def _tests(one: Compared, limit: float | None) -> list[Checked]:
    """A test per case and one of the mean: failed if slower than allowed, or INVALID."""
    group = f"{one.other.name} against {one.base.name}"
    most = inf if limit is None else 1 + limit
    seconds = [*(pair.whole.b for pair in one.pairs), 0.0]
    made = []
    for (name, ratio, verdict), time in zip(one.judged, seconds):
        low = ratio.interval.low if ratio.interval else 0.0
        failure = f"slower by {percent(low - 1)} or more" if low > most else ""
        made.append(Checked(group, name, failure, "" if ratio.interval else verdict, time))
    for left in one.left:
        wrong = limit is not None and "INVALID" in left.reason and left.where == one.other.name
        reason = f"{left.where}: {left.reason}"
        made.append(Checked(group, left.case.name, reason * wrong, reason * (not wrong)))
    if limit is not None and all(test.skipped for test in made):
        made.append(Checked(group, f"slower by at most {percent(limit)}", error=UNJUDGED))
    return made


@typed
def history(*folders: Results) -> Findings[CaseSeries]:
    """How the times of cases changed over dates, and since when.

    folders: results folders, folders of results folders, or what `run`, `sweep` or `load`
    returned

    `found` has the points of each case and processor. Raises InputError if there is no
    record, ModuleNotFoundError without the package ruptures.
    """
    if not folders:
        raise InputError("history: no folder; expected one or more")
    with working("history: reading records"):
        seen = {(one.id, one.created): one for folder in folders for one in _glances(folder)}
    kept = list(filter(counts, seen.values()))
    found = series_of(kept)
    summary = history_table(found)
    said = history_conclusions(found, len(seen) - len(kept))
    title = f"History of {plural(len(found), 'case')}"
    return Findings(title, found, said, summary, (changes_table(found), summary), _histories)


def _histories(found: Sequence[CaseSeries]) -> "list[Plot]":
    from fembench.report.plots.ratios import histories

    return histories(found)


def _glances(where: Results) -> Iterator[Glance]:
    """Each record of a results folder or, if it is none, of those in it. Raises InputError."""
    if isinstance(where, Runs):
        yield from map(glance_of, where)
        return
    folder = Path(where)
    if not folder.is_dir():
        raise InputError(f"{folder}: expected a folder of results, or of results folders")
    below = (path for one in sorted(folder.iterdir()) for path in run_paths(one))
    paths = run_paths(folder) or list(below) or record_paths(folder)
    if not paths:
        raise InputError(f"{folder}: no records found; expected runs/*.json, or results folders")
    yield from map(glance, paths)
