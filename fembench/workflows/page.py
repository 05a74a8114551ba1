"""The page of a results folder, for notebooks and scripts."""

from dataclasses import replace
from pathlib import Path

from fembench.base.arguments import typed
from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.report.tables import CampaignResults, conclusions_of, read_campaign, tables_of
from fembench.workflows.notebook import Runs
from fembench.workflows.sweep_state import unfinished


@typed
def page(runs: Runs | Path | str) -> Path:
    """Build the report of a results folder; returns the path of its index.html. Raises InputError.

    runs: what `run`, `sweep` or `load` returned, or the folder, for all runs of it; a
    selection takes the place of the earlier report, and says of how many runs it is
    """
    from fembench.report.page import write

    folder = _folder(runs)
    campaign = whole = read_campaign(folder)
    if isinstance(runs, Runs):
        campaign = _selection(whole, runs)
    said = [*(unfinished(folder) if campaign is whole else ()), *conclusions_of(campaign)]
    return write(campaign, tables_of(campaign), folder / "report", said=said)


def _selection(campaign: CampaignResults, runs: Runs) -> CampaignResults:
    """The campaign with these runs alone, as its name says; itself, if they are all it has."""
    if not runs:
        raise InputError("page of no runs: expected at least one")
    chosen = {record.id for record in runs}
    if chosen >= {record.id for record in campaign.records}:
        return campaign
    name = f"{campaign.name}: {len(runs)} of {plural(len(campaign.records), 'run')}"
    fields = {id: path for id, path in campaign.fields.items() if id in chosen}
    return replace(campaign, name=name, records=list(runs), failures=[], fields=fields, peers=None)


def _folder(runs: Runs | Path | str) -> Path:
    folder = Path(runs.source if isinstance(runs, Runs) else runs)
    if folder.is_file() and folder.parent.name == "runs":  # the record of a run
        folder = folder.parents[1]
    if not folder.is_dir():
        raise InputError(f"page of {folder}: expected a folder of results, or runs of one")
    return folder
