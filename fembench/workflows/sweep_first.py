"""What the default campaign measures before its runs on several hosts: nodes, network."""

from fembench.base.errors import AllocationLostError, FembenchError, UnsharedError
from fembench.base.progress import progress
from fembench.bench.campaign_folder import Folder
from fembench.bench.campaign_hosts import CampaignHosts
from fembench.characterize.node_launches import PATIENCE, NodesAsked
from fembench.records.nodes import FOLDER
from fembench.report.node_tables import conclusions
from fembench.weights.slow_nodes import slow_nodes
from fembench.workflows.characterize import machine
from fembench.workflows.nodes import measured_in
from fembench.workflows.sweep_source import nodes_in

MACHINE = "machine.json"  # in the results folder: speeds and network of the hosts
FEW_MINUTES = 10.0  # with less, the network is not measured
FEWEST_MINUTES = 2.0  # with less, nor are slow hosts looked for, which takes up to half a minute
NODES_SECONDS, NETWORK_SECONDS = 30.0, 120.0  # that these take at most, and about
QUARTER = 0.25  # of the minutes, after which a launch that looks for them is ended


def measured_first(there: CampaignHosts, folder: Folder, minutes: float, machine: bool) -> dict[str, float]:
    """Measurements before the runs of the default campaign -> seconds they take."""
    found = {}
    if _wants_nodes(there, folder) and not 0 < minutes < FEWEST_MINUTES:
        found["slow hosts"] = NODES_SECONDS
    if _wants_network(there, folder) and not machine and not 0 < minutes < FEW_MINUTES:
        found["network"] = NETWORK_SECONDS
    return found


def _wants_nodes(there: CampaignHosts, folder: Folder) -> bool:
    """Whether slow hosts are to be looked for: once, before the campaign begins."""
    begun = nodes_in(folder, there) or any(folder.runs.glob("[!.]*.json"))
    return len(there.job.hosts) > 1 and not begun


def _wants_network(there: CampaignHosts, folder: Folder) -> bool:
    return len(there.job.hosts) > 1 and not (folder.path / MACHINE).exists()


def measure_nodes(there: CampaignHosts, folder: Folder, minutes: float, command: str) -> None:
    """Find the slow hosts, as `fembench nodes` does, unless it has begun or they are known.

    The slow ones are named with the cause. A failure is said, and ends nothing.
    """
    if not _wants_nodes(there, folder):
        return
    place, hostfile = folder.path / FOLDER, there.hostfile
    if 0 < minutes < FEWEST_MINUTES:
        by_hand = f"fembench nodes --results {place}" + (f" --hostfile {hostfile}" if hostfile else "")
        progress(f"nodes: left out, as they take up to half a minute ({by_hand})")
        return
    patience = min(PATIENCE, QUARTER * 60 * minutes) if minutes else PATIENCE
    try:
        asked = NodesAsked(hostfile=hostfile, command=command, patience=patience)
        record, path = measured_in(place, asked)
    except FembenchError as error:
        _raise_if_fatal(error)
        progress(f"nodes: not measured: {error}")
        return
    for line in conclusions(record, slow_nodes(record)):
        progress(f"nodes: {line}")
    progress(f"nodes: {path} (fembench nodes {place})")


def _raise_if_fatal(error: FembenchError) -> None:
    """Raise what every later run would meet: hosts gone, or a folder not shared."""
    if isinstance(error, (AllocationLostError, UnsharedError)):
        raise error


def measure_network(there: CampaignHosts, folder: Folder, minutes: float, command: str) -> None:
    """Write speeds and network of the hosts to MACHINE in the folder, unless it is there.

    A failure is said, and the campaign goes on without.
    """
    path, hostfile = folder.path / MACHINE, there.hostfile
    if not _wants_network(there, folder):
        return
    if 0 < minutes < FEW_MINUTES:
        by_hand = f"fembench characterize --network --quick -o {path}"
        by_hand += f" --hostfile {hostfile}" if hostfile else ""
        progress(f"network: left out, as it takes about two minutes ({by_hand})")
        return
    try:
        slots = there.job.slots
        machine(slots, path=path, quick=True, hostfile=hostfile, command=command, tell=progress)
    except FembenchError as error:
        _raise_if_fatal(error)
        progress(f"network: not measured: {error}")
        return
    progress(f"network: {path} (fembench predict --machine {path})")
