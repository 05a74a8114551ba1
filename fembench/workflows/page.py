"""The page of a results folder, for notebooks and scripts."""

from pathlib import Path

from fembench.base.arguments import typed
from fembench.base.errors import InputError
from fembench.report.tables import conclusions_of, read_campaign, tables_of
from fembench.workflows.notebook import Runs
from fembench.workflows.sweep_state import unfinished


@typed
def page(runs: Runs | Path | str) -> Path:
    """Build the report of a results folder; returns the path of its index.html. Raises InputError.

    runs: what `run`, `sweep` or `load` returned, or the folder; the report has all runs of
    the folder
    """
    from fembench.report.page import write

    folder = _folder(runs)
    campaign = read_campaign(folder)
    said = [*unfinished(folder), *conclusions_of(campaign)]
    return write(campaign, tables_of(campaign), folder / "report", said=said)


def _folder(runs: Runs | Path | str) -> Path:
    folder = Path(runs.source if isinstance(runs, Runs) else runs)
    if folder.is_file() and folder.parent.name == "runs":  # the record of a run
        folder = folder.parents[1]
    if not folder.is_dir():
        raise InputError(f"page of {folder}: expected a folder of results, or runs of one")
    return folder
