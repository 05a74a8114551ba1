"""Measure all nodes at once, then the slow ones alone."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from fembench.base.errors import InputError
from fembench.base.files import write_atomic
from fembench.base.progress import progress, working
from fembench.characterize.node_launches import NodesAsked, launch_nodes
from fembench.launch.hosts import hostfile_text
from fembench.launch.scratch import occupied, reserved, writable_file
from fembench.records.nodes import NODES_SCHEMA, NodesRecord, load_nodes, save_nodes
from fembench.report import node_tables
from fembench.weights.slow_nodes import NodesFindings, slow_nodes

__all__ = ["NodesAsked", "NodesFound", "analysed", "measured_in", "writable_file", "write_without"]


@dataclass(frozen=True)
class NodesFound:
    """A measurement of nodes, and what follows from it."""

    record: NodesRecord
    path: str  # of a new record; "" for one that was read

    @cached_property
    def verdicts(self) -> NodesFindings:
        """Verdict, cause and speed of every node."""
        return slow_nodes(self.record)

    @property
    def slow(self) -> set[str]:
        """The names of the slow nodes."""
        return {node.name for node in self.verdicts.named("slow")}

    def conclusions(self) -> list[str]:
        """What disturbed the nodes, which are slow, and what to do, in sentences."""
        return node_tables.conclusions(self.record, self.verdicts)

    def as_text(self, everything: bool = False) -> str:
        """The tables that support the conclusions, or `everything`."""
        return node_tables.as_text(self.record, self.verdicts, everything)


def analysed(record: NodesRecord | Path | str, path: str = "") -> NodesFound:
    """What follows from a record, its file, or the newest in a folder. Raises InputError."""
    return NodesFound(record if isinstance(record, NodesRecord) else load_nodes(record), path)


def write_without(found: NodesFound, path: Path | str) -> int:
    """Write a host file without the slow nodes; the number of the others.

    Raises InputError for emulated nodes, and if all are slow.
    """
    if found.record.first.environment.synthetic:
        raise InputError("--without: emulated nodes are no hosts; expected a measurement of real ones")
    nodes, slow = found.record.first.nodes, found.slow
    kept = [(node.listed, node.slots) for node in nodes if node.name not in slow]
    if not kept:
        raise InputError(f"--without {path}: every node is slow; no host file is written")
    write_atomic(path, hostfile_text(kept))
    return len(kept)


def measured_in(folder: Path, asked: NodesAsked) -> tuple[NodesRecord, str]:
    """(record, its path) of a new measurement, saved after each launch.

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
