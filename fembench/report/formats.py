"""The formats of other programs that a campaign is exported in, each declared once.

The command line follows; `writers.py` writes them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fembench.base.errors import InputError
from fembench.base.files import atomic_folder, atomic_path

if TYPE_CHECKING:
    from fembench.report.tables import CampaignResults


class ExportFormat(NamedTuple):
    """One format."""

    help: str  # what it has, and what reads it
    file: str = ""  # its name; "": a folder, named as the format


EXPORTS = {
    "csv": ExportFormat("every measured time, a row each", "times.csv"),
    "parquet": ExportFormat("the same for pandas, DuckDB, R (needs pyarrow)", "times.parquet"),
    "extra-p": ExportFormat("times by ranks and equations, from which Extra-P models scaling"),
    "talp-pages": ExportFormat("efficiency factors of every run"),
    "caliper": ExportFormat("profiles by rank and phase, for hatchet and thicket"),
    "otf2": ExportFormat("traced runs for Vampir (needs otf2)"),
    "perfetto": ExportFormat("traced runs for ui.perfetto.dev"),
    "vtu": ExportFormat("solutions of runs with --fields, for ParaView"),
}


def export(name: str, campaign: CampaignResults, folder: Path, *, new: bool = False) -> Path:
    """Write a campaign in a format to `folder`, whole or not at all; its path there.

    `new`: what is there is not replaced. Raises InputError if there is nothing
    to write, ModuleNotFoundError without the package that writes it.
    """
    from fembench.report import writers

    form = EXPORTS[name]
    target = folder / (form.file or name)
    if new and target.exists():
        raise InputError(f"{target} exists; expected a folder without it")
    if not campaign.records:
        raise InputError(f"{campaign.name}: no run has a record, so there is nothing to export")
    with (atomic_path if form.file else atomic_folder)(target) as place:
        getattr(writers, name.replace("-", "_"))(campaign, place)
        if not form.file and not any(place.iterdir()):
            raise InputError(f"{campaign.name}: no run has {form.help}, which {name} takes")
    return target
