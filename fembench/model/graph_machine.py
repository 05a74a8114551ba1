"""The machine on which `fembench simulate` runs a graph: from options, or from a file."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from fembench.base.errors import InputError
from fembench.model.forecast import with_collectives
from fembench.model.graph import ExecutionGraph
from fembench.model.machine import Machine, checked_speeds, even_machine
from fembench.model.slots import chosen, machine_of, slots_of, waiting_slows
from fembench.records.hlogp import GivenLink
from fembench.records.profile import load_profile


def even_machine_for(
    graph: ExecutionGraph,
    link: GivenLink | None = None,
    speeds: Sequence[float] = (),
    contention: bool = False,
) -> Machine:
    """Every rank on its own host, one network for all: `link`, or as in the graph's run.

    Raises InputError if neither is known.
    """
    if link is None and graph.message is None:
        raise InputError("unknown message costs; expected --machine FILE or --link SECONDS,BYTES/S")
    latency, per_byte = (link.latency, 1 / link.bandwidth) if link else graph.message or (0.0, 0.0)
    machine = even_machine(
        graph.ranks,
        latency=latency,
        per_byte=per_byte,
        overhead=link.overhead if link else 0.0,
        speeds=speeds,
        contention=contention,
    )
    return dataclasses.replace(machine, names=graph.hosts) if len(graph.hosts) == graph.ranks else machine


def machine_in_file(
    path: Path | str, graph: ExecutionGraph, speeds: Sequence[float] = (), contention: bool | None = None
) -> Machine:
    """The machine of a profile. Raises InputError.

    If not recorded on that machine, waiting ranks slow down others on their core.
    """
    profile = load_profile(path)
    slots = chosen(slots_of(profile, "sym"), graph.ranks)
    machine = with_collectives(machine_of(profile, slots, None, contention), profile)
    there = graph.hosts == tuple(machine.names[h] for h in machine.host)
    slower = [1.0] * graph.ranks if there else waiting_slows(profile, slots)
    found = zip(checked_speeds(speeds, graph.ranks), slower)
    return dataclasses.replace(machine, speeds=tuple(speed / slow for speed, slow in found))
