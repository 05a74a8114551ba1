"""Start `fembench nodes` under MPI: one launch over all hosts of the job, or some."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from fembench.base.config import read_text
from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.characterize.jobs import NodesJob
from fembench.launch.allocation import MOST_SHOWN, allocation, in_words, room_of, same_host
from fembench.launch.hosts import Allocation, HostSlots, hostfile_of, is_rankfile
from fembench.launch.line import job_line
from fembench.launch.run_job import measure
from fembench.records.nodes import NodeSamples, NodesLaunch
from fembench.synthetic.speeds import NodeSpeed, parse_nodes

EVERYONE: Mapping[str, str] = {}
PATIENCE = 900.0  # seconds after which a launch is ended
SECONDS = 1.2  # usual time of a round, with the cores of a node in turn


@dataclass(frozen=True)
class NodesAsked:
    """What to measure."""

    hostfile: str = ""
    per_node: int = 0  # ranks on each node; 0: one per slot, or one per emulated node
    rounds: int = 8
    emulate: str = ""  # speeds of emulated nodes, as for --emulate
    command: str = ""
    patience: float = PATIENCE  # seconds after which each launch is ended


def launch_nodes(
    asked: NodesAsked,
    only: Mapping[str, str] = EVERYONE,
    *,
    scratch: Path,
    tell: Callable[[str], None] = lambda text: None,
) -> NodesLaunch:
    """One launch over all nodes, or over some.

    only: {name in the list of hosts: name in an earlier launch}; scratch: a folder that
    all hosts see

    Raises InputError, or RunFailedError if the job ended without a result.
    """
    job = _job(asked.hostfile)
    rounds = plural(asked.rounds, "round")
    values: dict[str, Any] = {"rounds": asked.rounds, "command": asked.command}
    if asked.emulate:
        chosen = _emulated(asked.emulate, job, only)
        ranks = max(asked.per_node, 1) * len(chosen)
        tell(f"{plural(len(chosen), 'emulated node')}, {plural(ranks, 'rank')}: {rounds}")
        values |= {"names": tuple(chosen), "speeds": tuple(chosen.values())}
        synthetic = f"emulated nodes {asked.emulate}"
        return _launched(asked, NodesJob(ranks=ranks, synthetic=synthetic, **values), (), scratch, tell)
    hosts = [host for host in room_of("", asked.per_node, job) if not only or host.name in only]
    ranks = sum(host.slots for host in hosts)
    usual = f"usually {SECONDS * asked.rounds:.0f} s and the start"
    tell(f"{plural(len(hosts), 'node')}, {plural(ranks, 'rank')}: {rounds}, {usual}")
    placed = () if len(job.hosts) == 1 else hosts  # one host: as in any other run on it
    synthetic = os.environ.get("FEMBENCH_SYNTHETIC", "")
    found = _launched(asked, NodesJob(ranks=ranks, synthetic=synthetic, **values), placed, scratch, tell)
    nodes = _listed(found.nodes, hosts, {host.name: host.slots for host in job.hosts}, only)
    return msgspec.structs.replace(found, nodes=tuple(nodes))


def _job(hostfile: str) -> Allocation:
    """The allocation. Raises InputError for a rankfile: it has no hosts to choose from."""
    path = hostfile_of(hostfile)
    if path and is_rankfile(read_text(path)):
        raise InputError(f"{path} is a rankfile, which places every rank; expected a list of hosts")
    return allocation(hostfile)


def _launched(
    asked: NodesAsked,
    job: NodesJob,
    hosts: Sequence[HostSlots],
    scratch: Path,
    tell: Callable[[str], None],
) -> NodesLaunch:
    line = job_line(job.ranks, asked.hostfile, (), hosts)
    return measure(
        "fembench.characterize.node_rates",
        job,
        NodesLaunch,
        line,
        asleep=line.crowded,
        scratch=scratch,
        timeout=asked.patience,
        tell=tell,
    )


def _listed(
    nodes: Sequence[NodeSamples],
    hosts: Sequence[HostSlots],
    slots: Mapping[str, int],
    known: Mapping[str, str],
) -> Iterator[NodeSamples]:
    """The nodes, named and with slots as in the list of hosts, and their own names.

    Raises InputError if the launcher started ranks on other hosts, or fewer.
    """
    if len(nodes) != len(hosts):
        started = ", ".join(node.name for node in nodes[:MOST_SHOWN])
        raise InputError(
            f"{plural(len(hosts), 'host')} in the list ({in_words(hosts)}), but the launcher started ranks "
            f"on {len(nodes)} ({started}): is a host there under two names?"
        )
    for k, node in enumerate(nodes):
        host = next((host.name for host in hosts if same_host(host.name, node.name)), hosts[k].name)
        name = known.get(host, node.name)
        yield msgspec.structs.replace(node, name=name, listed=host, slots=slots[host])


def _emulated(speeds: str, job: Allocation, only: Mapping[str, str]) -> dict[str, NodeSpeed]:
    """Nodes emulated on one host, node1, node2, … (SYNTHETIC). Raises InputError."""
    if len(job.hosts) > 1:
        raise InputError(
            f"emulate: nodes are emulated on one host; the job has {len(job.hosts)} ({job.source})"
        )
    nodes = {f"node{k}": speed for k, speed in enumerate(parse_nodes(speeds), 1)}
    return {name: speed for name, speed in nodes.items() if not only or name in only}
