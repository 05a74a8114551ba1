"""Measure all nodes at once, then the slow ones alone."""

from pathlib import Path

import msgspec

from fembench.base.progress import progress, working
from fembench.characterize.node_launches import NodesAsked, launch_nodes
from fembench.launch.scratch import occupied, reserved
from fembench.records.nodes import NODES_SCHEMA, NodesRecord, save_nodes
from fembench.weights.slow_nodes import slow_nodes


def measured_in(folder: Path, asked: NodesAsked) -> tuple[NodesRecord, str]:
    """(record, its path in the folder) of a new measurement, which is saved after each launch.

    Raises InputError or RunFailedError.
    """

    def tell(text: str) -> None:
        progress(f"nodes: {text}")

    with occupied(folder, shared=True), reserved(folder, "nodes") as name:
        path = folder / f"{name}.json"
        with working("nodes: measuring all nodes") as now:
            record = NodesRecord(schema=NODES_SCHEMA, first=launch_nodes(asked, scratch=folder, tell=tell))
            save_nodes(record, path)
            slow = {node.name for node in slow_nodes(record).named("slow")}
            if slow:
                now.text = f"nodes: measuring {', '.join(sorted(slow))} alone"
                tell(f"slow: {', '.join(sorted(slow))}; measuring {'it' if len(slow) == 1 else 'them'} alone")
                only = {node.listed: node.name for node in record.first.nodes if node.name in slow}
                again = launch_nodes(asked, only, scratch=folder, tell=tell)
                record = msgspec.structs.replace(record, second=again)
                save_nodes(record, path)
    return record, str(path)
