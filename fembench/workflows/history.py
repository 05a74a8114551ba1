"""The times of cases over dates, from the records of many runs."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from fembench.base.errors import InputError
from fembench.base.progress import working
from fembench.base.units import plural
from fembench.records.store import Glance, glance, record_paths
from fembench.report.history import CaseSeries, changes_table, history_conclusions, history_table, series_of
from fembench.report.outputs import Findings

ENDINGS = (".md", ".json", ".html")


@dataclasses.dataclass(frozen=True)
class CampaignHistory:
    """Cases over dates."""

    series: Sequence[CaseSeries]

    @property
    def findings(self) -> Findings:
        """Sentences, tables and plots."""
        made = [changes_table(self.series), history_table(self.series)]
        tables = [table for table in made if table.rows]
        title = f"History of {plural(len(self.series), 'case')}"
        return Findings(title, history_conclusions(self.series), tables, self._plots)

    def _plots(self):
        from fembench.report.plots.ratios import histories

        return histories(self.series)


def history(folders: Sequence[Path | str]) -> CampaignHistory:
    """The series of all records in these folders, or in the results folders in them.

    Raises InputError if there is no record, ModuleNotFoundError without ruptures.
    """
    with working("history: reading records"):
        found = {(one.id, one.created): one for folder in folders for one in _glances(Path(folder))}
    return CampaignHistory(series_of(found.values()))


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
