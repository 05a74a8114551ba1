"""An execution graph, simulated on a machine."""

import dataclasses
from pathlib import Path
from typing import NamedTuple

from fembench.base.errors import InputError
from fembench.base.units import seconds
from fembench.model.configuration import not_invalid
from fembench.model.engine import SimulationOutcome, simulate
from fembench.model.events import simulate_events
from fembench.model.graph import ExecutionGraph, load_graph
from fembench.model.graph_machine import even_machine_for, machine_in_file
from fembench.model.machine import Machine, faster_network
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
from fembench.records.hlogp import parse_link
from fembench.records.store import load

__all__ = ["Simulated", "result_tree", "simulated", "text_of", "write_chrome"]

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


def _machine(graph: ExecutionGraph, machine: str, link: str, speeds: str, contention: bool | None) -> Machine:
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
    graph, plan, outcome = found.graph, found.plan, found.outcome
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
