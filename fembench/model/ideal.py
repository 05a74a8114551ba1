"""A recorded run on an ideal network: messages cost nothing, so ranks wait only for each other's work.

This is the simulation with which the POP methodology (Wagner, Mohr, Giménez and Labarta 2019) tells the time
lost in transferring data from the time lost in waiting for a rank that is late.
"""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import structs

from fembench.model.engine import simulate
from fembench.model.from_record import graph_of_record
from fembench.model.graph import Compute, Event, Loop, Program
from fembench.model.machine import even_machine
from fembench.model.planner import make_plan
from fembench.records.phases import ASSEMBLY, CG, OWN_MESSAGES, SYNC
from fembench.records.record import Record
from fembench.records.times import times_of


class IdealRun(NamedTuple):
    """Seconds of assembly and CG on the slowest rank, in the median set of a record."""

    recorded: float
    ideal: float  # of the same work if messages cost nothing


def on_ideal_network(record: Record) -> IdealRun:
    """The traced iterations simulated without latency, size or overhead of messages.

    Raises InputError for a record whose graph cannot be made: see `graph_of_record`.
    """
    graph = graph_of_record(record)
    programs = tuple(tuple(_free_of_messages(program)) for program in graph.programs)
    machine = even_machine(graph.ranks, latency=0.0, per_byte=0.0, overhead=0.0)
    outcome = simulate(make_plan(structs.replace(graph, programs=programs), machine))
    own = outcome.finish - outcome.wait[:, SYNC]  # the barrier between assembly and CG is part of neither
    own += graph.residual * graph.iterations  # interruptions delay all ranks, whatever messages cost
    middle = times_of(record).middle
    recorded = middle[:, ASSEMBLY] + record.solve.iterations * middle[:, CG]
    return IdealRun(float(recorded.max()), float(own.max()))


def _free_of_messages(program: Program) -> Iterator[Event]:
    """The program without packing, sending and unpacking; messages themselves stay, to be waited for."""
    for event in program:
        if isinstance(event, Loop):
            yield Loop(event.turns, tuple(_free_of_messages(event.body)))
        elif not (isinstance(event, Compute) and event.phase in OWN_MESSAGES):
            yield event
