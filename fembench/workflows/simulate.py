"""The execution graph of a run, and its simulation on a machine: that of options, or of a file.

The graph says what each rank computed, sent and waited for.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fembench.base.config import read_json
from fembench.base.errors import InputError
from fembench.base.tables import table
from fembench.base.units import plural, seconds
from fembench.model.configuration import not_invalid
from fembench.model.engine import SimulationOutcome, simulate
from fembench.model.events import simulate_events
from fembench.model.forecast import with_collectives
from fembench.model.from_record import graph_of_record
from fembench.model.graph import ExecutionGraph, count, length, load_graph, save_graph
from fembench.model.machine import Machine, checked_speeds, even_machine, faster_network
from fembench.model.measures import (
    bottlenecks,
    errors_text,
    phase_table,
    rank_table,
    residual_text,
    result_tree,
)
from fembench.model.path import timeline, write_timeline
from fembench.model.plan import SimulationPlan
from fembench.model.planner import make_plan
from fembench.model.slots import chosen, machine_of, slots_of, waiting_slows
from fembench.records.hlogp import GivenLink, parse_link
from fembench.records.profile import load_profile
from fembench.records.store import load


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
    slots = chosen(profile, slots_of(profile, "sym"), graph.ranks)
    machine = with_collectives(machine_of(profile, slots, None, contention), profile)
    there = graph.hosts == tuple(machine.names[h] for h in machine.host)
    slower = [1.0] * graph.ranks if there else waiting_slows(profile, slots)
    found = zip(checked_speeds(speeds, graph.ranks), slower)
    return dataclasses.replace(machine, speeds=tuple(speed / slow for speed, slow in found))


__all__ = [
    "Simulated",
    "as_text",
    "graph_in",
    "result_tree",
    "save_graph",
    "simulated",
    "summary",
    "text_of",
    "write_chrome",
]

AS_SEEN = (
    "network: message costs are those observed in the run, which include waiting and interruptions; "
    "--machine PROFILE has measured ones"
)


class Simulated(NamedTuple):
    """A simulation, and of what."""

    graph: ExecutionGraph
    machine: Machine
    plan: SimulationPlan
    outcome: SimulationOutcome
    as_seen: bool  # messages cost what they cost in the run of the graph


def simulated(
    graph: Path | str,
    *,
    machine: Path | str = "",
    link: str = "",
    speeds: str = "",
    network: float = 1.0,
    contention: bool | None = None,
    overlap: bool = True,
    period: bool = True,
) -> Simulated:
    """Simulate the graph in a file. Raises InputError.

    machine: file of a profile with a network; link: SECONDS,BYTES/S[,SECONDS] in its
    place;
    without both, messages cost what they did in the graph's run
    speeds: '1,1,0.5' of the ranks, relative to those recorded; network: how many times
    faster it is
    contention: messages of a host one after another; None: as far as the machine was
    measured to do so
    overlap: messages above the switch travel while ranks compute; period: skip turns of
    loops that repeat
    """
    found = load_graph(graph)
    there = _machine(found, str(machine), link, speeds, contention)
    if not overlap:
        there = dataclasses.replace(there, overlap=False)
    there = there if network == 1 else faster_network(there, network)
    plan = make_plan(found, there)
    outcome = simulate_events(plan) if there.contention else simulate(plan, period=period)
    return Simulated(found, there, plan, outcome, not (machine or link))


def _machine(
    graph: ExecutionGraph,
    machine: str,
    link: str,
    speeds: str,
    contention: bool | None,
) -> Machine:
    try:
        numbers = tuple(float(word) for word in speeds.split(",")) if speeds else ()
    except ValueError:
        raise InputError(f"--speeds '{speeds}': expected numbers such as 1,1,0.5") from None
    if machine:
        return machine_in_file(machine, graph, numbers, contention)
    given = parse_link(link, overhead=True) if link else None
    return even_machine_for(graph, given, numbers, bool(contention))


def write_chrome(found: Simulated, path: Path | str) -> None:
    """Write the timeline for ui.perfetto.dev."""
    write_timeline(timeline(found.outcome), found.plan.phases, found.machine, path)


def text_of(found: Simulated, *, against: Path | str | None = None) -> str:
    """The tables; with `against`, a record, also the errors. Raises InputError."""
    graph = found.graph
    plan = found.plan
    outcome = found.outcome
    each = f", {seconds(outcome.makespan / graph.iterations)} per iteration" if graph.iterations else ""
    parts = [f"{graph.source}: {seconds(outcome.makespan)}{each}"]
    parts += [residual_text(graph)] if graph.residual else []
    parts += [graph.note] if graph.note else []
    parts += [rank_table(plan, outcome), phase_table(plan, outcome)]
    if against:
        parts.append(errors_text(not_invalid([load(against)])[0][0], graph, outcome))
    last = list(bottlenecks(plan, outcome, [found.machine.names[h] for h in found.machine.host]))
    last += [AS_SEEN] if found.as_seen else []
    skipped = sum(run.repeats * run.period for run in outcome.runs)
    if skipped:
        last.append(f"turns of loops: {outcome.simulated} simulated, {skipped} identical ones skipped")
    return "\n\n".join([*parts, "\n".join(last)])


def graph_in(path: Path | str) -> ExecutionGraph:
    """The graph in a file, or that of the record in a file. Raises InputError."""
    tree = read_json(path, dict, "a graph of fembench trace, or a record")
    return load_graph(path) if "programs" in tree else graph_of_record(load(path))


def summary(graph: ExecutionGraph) -> dict[str, Any]:
    """The events of each rank, with loops rolled up and unrolled, and the graph's source."""
    ranks = [
        {"rank": r, "events": count(events), "unrolled": length(events)}
        for r, events in enumerate(graph.programs)
    ]
    return {"source": graph.source, "note": graph.note, "residual": graph.residual, "ranks": ranks}


def as_text(graph: ExecutionGraph) -> str:
    """The same as text."""
    ranks = summary(graph)["ranks"]
    lines = [f"execution graph of {graph.source}, {plural(graph.ranks, 'rank')}\n"]
    lines += [table(list(ranks[0]), [list(row.values()) for row in ranks])]
    lines += [graph.note] if graph.note else []
    return "\n".join([*lines, residual_text(graph)] if graph.residual else lines)
