"""What a folder of results contains, and every table of it; needs neither jinja2 nor matplotlib."""

import dataclasses
from pathlib import Path

from fembench.base.config import read_text
from fembench.records import store
from fembench.records.contest import FILE as PEERS_FILE
from fembench.records.contest import PeersRecord, load_peers
from fembench.records.nodes import NodesRecord, nodes_of_campaign
from fembench.records.record import NO_TIME, Failure, Record
from fembench.report.conclusions import conclusions
from fembench.report.exports import fields_path
from fembench.report.results import results
from fembench.report.table import Table
from fembench.report.tables import Against, every_table


@dataclasses.dataclass(frozen=True, slots=True)
class CampaignResults:
    """The contents of a folder of results."""

    name: str
    records: list[Record]
    failures: list[Failure]  # also of runs that there was no time for
    fields: dict[str, Path]  # record id -> file
    description: str  # campaign.toml, or ""
    peers: PeersRecord | None = None  # a comparison with other programs
    nodes: NodesRecord | None = None  # which hosts are slow

    @property
    def failed(self) -> int:
        """The number of runs that failed."""
        return sum(failure.kind != NO_TIME for failure in self.failures)


def tables_of(campaign: CampaignResults, base: int = 0, against: Against | None = None) -> list[Table]:
    """Every table of the campaign that has rows.

    base: ranks of the run to which speedups refer; 0: the fewest
    against: another campaign, whose headline is shown next to this one's
    """
    return every_table(campaign.records, campaign.failures, campaign.peers, base, against, campaign.nodes)


def conclusions_of(campaign: CampaignResults) -> list[str]:
    """What its runs show, in sentences."""
    return conclusions(results(campaign.records, campaign.nodes), campaign.failed)


def read_campaign(folder: Path, peers_file: Path | None = None) -> CampaignResults:
    """The contents of a folder. Raises InputError without record, failure, comparison."""
    failures = list(store.failures(folder)) if folder.is_dir() else []
    inside = folder / PEERS_FILE
    found_peers = peers_file or (inside if inside.is_file() else None)
    peers = load_peers(found_peers) if found_peers else None
    lenient = failures or (peers and not peers_file)
    records = store.distinct(map(store.load, _runs(folder))) if lenient else store.load_all(folder)
    found = {r.id: fields_path(folder, r.id) for r in records}
    description = folder / "campaign.toml"
    return CampaignResults(
        name=folder.resolve().name,
        records=records,
        failures=failures,
        fields={name: path for name, path in found.items() if path.is_file()},
        description=read_text(description) if description.is_file() else "",
        peers=peers,
        nodes=nodes_of_campaign(folder),
    )


def _runs(folder: Path) -> list[Path]:
    """Files of records; none in a folder that has only a comparison."""
    return store.record_paths(folder) if (folder / "runs").is_dir() else []
