"""Nodes: what `fembench nodes` measured on every host of a job at the same time.

A *node* is a host here, as batch systems call it; with emulated speeds, several nodes
share one host. All rates are per second of elapsed time.
"""

import contextlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from fembench.base.config import write_json
from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.records.record import Environment, Frozen
from fembench.records.schema import read
from fembench.stats.outliers import FEWEST_ROUNDS

NODES_SCHEMA = 1
LEAST, MOST = 1e-30, 1e30  # of a rate
FOLDER = "nodes"  # of these records, in the folder of a campaign


class NodeFacts(Frozen, frozen=True):
    """What a node consists of, whatever part the job may use; see also HostFacts."""

    numa_nodes: int = 1
    physical_cores: int = 0  # 0: unknown
    threads: int = 0  # hardware threads; 0: unknown
    accelerators: tuple[str, ...] = ()  # '4 x NVIDIA H100'; (): none found


class NodeSamples(Frozen, frozen=True):
    """One node, with one sample per round.

    *Busy* is the fraction of the elapsed time in which ranks had a processor; 1:
    nothing else ran there.
    """

    name: str  # unique in a launch
    listed: str  # its name in the allocation or host file
    slots: int  # that it has there
    host: int  # index into the hosts of the environment
    facts: NodeFacts
    cpus: tuple[int, ...]  # [core] -> CPU that its rank is bound to; -1: not bound to one core
    cores: tuple[tuple[float, ...], ...]  # [core][round] flop/s, one after the other, data in cache
    cores_busy: tuple[tuple[float, ...], ...]  # [core][round]
    together: tuple[float, ...]  # [round] flop/s of all cores at once, data in cache
    together_busy: tuple[float, ...]  # [round]
    memory: tuple[float, ...]  # [round] byte/s of triads on all cores at once
    memory_busy: tuple[float, ...]  # [round]
    clock: tuple[float, ...] = ()  # [round] Hz while all cores compute; (): not readable
    throttled: int = -1  # thermal throttling events during the launch; -1: not readable

    @property
    def ranks(self) -> int:
        return len(self.cores)

    def core_name(self, core: int) -> str:
        """'core 5', by the number of its CPU, or 'rank 2 of the node' if it is not bound."""
        return f"core {self.cpus[core]}" if self.cpus[core] >= 0 else f"rank {core} of the node"


class NodesLaunch(Frozen, frozen=True):
    """One launch: all nodes were measured at the same time."""

    created: str  # ISO 8601, UTC
    seconds: float  # duration of the measurement
    environment: Environment
    nodes: tuple[NodeSamples, ...]

    @property
    def rounds(self) -> int:
        return len(self.nodes[0].together)


class NodesRecord(Frozen, frozen=True):
    """The result of `fembench nodes`."""

    schema: int
    first: NodesLaunch  # all nodes
    second: NodesLaunch | None = None  # the slow ones of the first launch, alone


def save_nodes(record: NodesRecord, path: Path) -> None:
    """Write the record, whole or not at all."""
    write_json(path, record)


def load_nodes(path: Path | str) -> NodesRecord:
    """The record in a file, or the newest in a folder. Raises InputError for others."""
    path = Path(path)
    if path.is_dir():
        found = [_load(one) for one in sorted(path.glob("nodes-r*.json"))]
        if not found:
            raise InputError(f"{path}: no measurement of nodes; expected nodes-r*.json of fembench nodes")
        return max(found, key=_age)
    return _load(path)


def _age(record: NodesRecord) -> tuple[str, str]:
    return record.first.created, (record.second or record.first).created


def nodes_of_campaign(folder: Path) -> NodesRecord | None:
    """The newest undamaged record in the folder of a campaign; None if there is none."""
    found = []
    for path in sorted((folder / FOLDER).glob("nodes-r*.json")):
        with contextlib.suppress(InputError):
            found.append(_load(path))
    return max(found, key=_age, default=None)


def _load(path: Path) -> NodesRecord:
    record = read(path, NodesRecord, NODES_SCHEMA, "a measurement of nodes", has="first", verb="nodes")
    for fault in _faults(record):
        raise InputError(f"{path}: {fault}")
    return record


def _faults(record: NodesRecord) -> Iterator[str]:
    """What does not fit together, in words."""
    yield from _launch_faults(record.first)
    if record.second is None:
        return
    yield from _launch_faults(record.second)
    known = {node.name: node.ranks for node in record.first.nodes}
    for node in record.second.nodes:
        if known.get(node.name) != node.ranks:
            yield f"second launch: {node.name} with {plural(node.ranks, 'rank')} is not in the first"


def _launch_faults(launch: NodesLaunch) -> Iterator[str]:
    if not launch.nodes:
        yield "no nodes; expected at least one"
        return
    if len({node.name for node in launch.nodes}) < len(launch.nodes):
        yield "a node occurs twice"
    if launch.rounds < FEWEST_ROUNDS:
        yield f"{plural(launch.rounds, 'round')}; expected at least {FEWEST_ROUNDS}"
    for node in launch.nodes:
        yield from _node_faults(node, launch.rounds, len(launch.environment.hosts))


def _node_faults(node: NodeSamples, rounds: int, hosts: int) -> Iterator[str]:
    if not 0 <= node.host < hosts:
        yield f"{node.name} on host {node.host}; expected 0 to {hosts - 1}"
    if not (node.ranks == len(node.cores_busy) == len(node.cpus) > 0):
        yield f"{node.name}: {len(node.cores)} cores, {len(node.cpus)} CPUs; expected as many, at least one"
    if node.slots < 1:
        yield f"{node.name}: {node.slots} slots; expected at least one"
    rates = {"one core": node.cores, "all cores": (node.together,), "memory": (node.memory,)}
    shares = (*node.cores_busy, node.together_busy, node.memory_busy)
    clock = {"clock": (node.clock,)} if node.clock else {}
    for name, rows in (rates | {"busy": shares} | clock).items():
        for row in rows:
            if len(row) != rounds:
                yield f"{node.name}: {plural(len(row), 'sample')} of {name}; expected {rounds}"
    for rate in _beyond([row for rows in rates.values() for row in rows], LEAST, MOST):
        yield f"{node.name}: {rate} per second; expected a positive rate"
    for share in _beyond(shares, LEAST, 1.0):
        yield f"{node.name}: busy for {share} of the time; expected above 0 and up to 1"
    for rate in _beyond([node.clock], 0.0, MOST):
        yield f"{node.name}: clock rate {rate}; expected a positive rate"


def _beyond(rows: Sequence[Sequence[float]], least: float, most: float) -> Iterator[float]:
    """Numbers outside of the limits, or not finite."""
    return (x for row in rows for x in row if not (math.isfinite(x) and least <= x <= most))
