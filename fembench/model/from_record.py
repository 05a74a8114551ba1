"""The execution graph of a run, from the traced iterations of its record.

Order and messages are those of the trace. Durations are scaled so that each phase lasts
as long as in the median timed set. Time between spans counts as computing of the loop.
Message costs follow from the trace: see `message_of`. What the run took beyond its
simulation, such as interruptions of single ranks that delay all, is the residual. It is
stated beside the graph and is not part of it: with it, a run would predict itself.

A recorded run on an ideal network: messages cost nothing, so ranks wait only for each
other's work.

This is the simulation with which the POP methodology (Wagner et al. 2019) tells time
lost in transfers from time lost in waiting for a late rank."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import structs

from fembench.base.errors import InputError
from fembench.base.units import plural
from fembench.methods.lookup import recurrence_of
from fembench.methods.steps import Reduction
from fembench.model.collectives import stages
from fembench.model.engine import simulate
from fembench.model.graph import (
    Collective,
    Compute,
    Event,
    ExecutionGraph,
    Loop,
    Program,
    Receive,
    Send,
    Wait,
)
from fembench.model.machine import even_machine
from fembench.model.planner import make_plan
from fembench.records.phases import ALLREDUCE, ASSEMBLY, CG, IN_GRAPHS, OWN_MESSAGES, SEND, SYNC, UNPACK, WAIT
from fembench.records.quiet import others_note
from fembench.records.record import Event as Span
from fembench.records.record import Record
from fembench.records.times import times_of
from fembench.records.traced import alignment


class RecordedMessages(NamedTuple):
    """Message costs observed in a run; overheads are part of the timed phases."""

    latency: float  # seconds
    per_byte: float


def graph_of_record(record: Record) -> ExecutionGraph:
    """One set, with assembly and all iterations, each the mean of the traced ones.

    Raises InputError if the record has no traced iterations.
    """
    spans = _spans(record)
    if not recurrence_of(record.case.method.recurrence, record.case.method.solver).waits:
        raise InputError(
            f"record {record.id}: recurrence {record.case.method.recurrence}; "
            "expected one that waits for its sums"
        )
    if record.case.method.exchange == "blocking":
        raise InputError(f"record {record.id}: exchange blocking has no graph; expected nonblocking")
    message = message_of(record)
    programs = [tuple(_whole(record, rank, one)) for rank, one in enumerate(spans)]
    return ExecutionGraph(
        phases=IN_GRAPHS,
        programs=tuple(programs),
        hosts=record.environment.host_of_rank,
        source=record.id,
        mesh_hash=record.mesh.hash,
        iterations=record.solve.iterations,
        message=message,
        note=_note(record),
        residual=residual(record),
    )


def _note(record: Record) -> str:
    lost = sum(record.dropped)
    dropped = f"{plural(lost, 'span')} dropped, last traced iteration left out" if lost else ""
    clocks = "; ".join(filter(None, [alignment(record), dropped]))
    return "\n".join(filter(None, [clocks, others_note(record)]))


def residual(record: Record) -> float:
    """Seconds per iteration that neither computing nor messages explain: the run minus
    its simulation; 0 if the simulation takes longer."""
    bodies = [tuple(_whole(record, rank, one))[-1:] for rank, one in enumerate(_spans(record))]
    latency, per_byte = message_of(record)
    on = even_machine(record.case.placement.ranks, latency=latency, per_byte=per_byte, overhead=0.0)
    alone = simulate(make_plan(ExecutionGraph(phases=record.phases, programs=tuple(bodies)), on))
    took = float(times_of(record).middle[:, CG].max())
    return max(0.0, took - alone.makespan / max(record.solve.iterations, 1))


def _spans(record: Record) -> list[dict[int, list[Span]]]:
    """[rank] {iteration: its spans in order}, for the iterations that are complete on
    all ranks, without the last one if spans were dropped."""
    found: list[dict[int, list[Span]]] = [defaultdict(list) for _ in range(record.case.placement.ranks)]
    for e in record.events:
        if e.iteration >= 0 and e.phase != CG:
            found[e.rank][e.iteration].append(e)
    common = set.intersection(*(set(one) for one in found)) if found else set()
    if not common:
        raise InputError(
            f"record {record.id} has no traced iterations; expected a run with --trace-iterations 3"
        )
    kept = sorted(common)[:-1] if any(record.dropped) and len(common) > 1 else sorted(common)
    return [{k: sorted(one[k], key=lambda e: e.begin) for k in kept[1:] or kept} for one in found]


def _whole(record: Record, rank: int, spans: dict[int, list[Span]]) -> Iterator[Event]:
    """Assembly, then a loop over the mean of the traced iterations."""
    found = times_of(record).middle[rank]
    if found[ASSEMBLY]:
        yield Compute(ASSEMBLY, float(found[ASSEMBLY]))
        yield Collective("barrier", 0, SYNC)  # CG begins after a barrier, as in a run
    body: list[Event] = []
    for phase, seconds in _mean_spans(spans, found):
        body += _events(record, rank, phase, seconds)
    rest = float(found[CG] - sum(found[p] for p in {e.phase for e in spans[min(spans)]}))
    body += [Compute(CG, rest)] if rest > 0 else []
    yield Loop(record.solve.iterations, tuple(body))


def _mean_spans(spans: dict[int, list[Span]], found: Sequence[float]) -> list[tuple[int, float]]:
    """(phase, seconds) of an iteration's spans, in order: means over iterations with
    the most frequent sequence, scaled to the phases' times in the run."""
    ways = Counter(tuple(e.phase for e in one) for one in spans.values())
    phases = ways.most_common(1)[0][0]
    alike = [
        [e.end - e.begin for e in one] for one in spans.values() if tuple(e.phase for e in one) == phases
    ]
    means = np.mean(alike, axis=0)
    traced = np.bincount(phases, means)
    return [(p, float(t * found[p] / traced[p]) if traced[p] else 0.0) for p, t in zip(phases, means)]


def _events(record: Record, rank: int, phase: int, seconds: float) -> Program:
    """The events of one span."""
    exchange = list(zip(record.partition.neighbours[rank], record.partition.message_bytes[rank]))
    if phase == SEND:
        return (
            *(Receive(q, m, SEND) for q, m in exchange),
            Compute(SEND, seconds),
            *(Send(q, m, SEND) for q, m in exchange),
        )
    if phase == WAIT:
        return (Wait(WAIT),) if exchange else ()
    if phase == ALLREDUCE:
        return (Collective("allreduce", 8 * _scalars(record), ALLREDUCE),)
    return (Compute(phase, seconds),) if seconds > 0 or phase == UNPACK else ()


def _scalars(record: Record) -> int:
    """Numbers in an all-reduce; its cost hardly depends on this."""
    recurrence = recurrence_of(record.case.method.recurrence, record.case.method.solver)
    return next(s.numbers for s in recurrence.plain if isinstance(s, Reduction))


def message_of(record: Record) -> RecordedMessages:
    """The cost of a message according to the record.

    An all-reduce ends log2 P exchanges after the last rank has begun it. A wait ends
    L(m) after the last neighbour has sent. Both need the common clock of a record's
    events. The fastest of each counts, because interruptions only add time.
    """
    spans = _spans(record)
    if record.case.placement.ranks == 1:
        return RecordedMessages(0.0, 0.0)
    alone = [max(ends) - max(begins) for begins, ends in _reductions(spans)]
    # imperfectly aligned clocks may give a negative time
    latency = max(0.0, min(alone)) / stages(record.case.placement.ranks) if alone else 0.0
    travel = list(_travels(record, spans))
    slopes = [max(0.0, (seconds - latency) / m) for m, seconds in travel if m]
    spent = times_of(record).middle
    room = float((spent[:, WAIT] + spent[:, ALLREDUCE]).min())  # of an iteration, for messages
    largest = max((m for row in record.partition.message_bytes for m in row), default=0)
    return RecordedMessages(max(latency, 0.0), min([*slopes, room / largest] if largest else [0.0]))


def _reductions(spans: list[dict[int, list[Span]]]) -> Iterator[tuple[list[float], list[float]]]:
    """Begins and ends of each all-reduce on all ranks."""
    for k in spans[0]:
        columns = [[e for e in one[k] if e.phase == ALLREDUCE] for one in spans]
        yield from (([e.begin for e in row], [e.end for e in row]) for row in zip(*columns))


def _travels(record: Record, spans: list[dict[int, list[Span]]]) -> Iterator[tuple[int, float]]:
    """(bytes, seconds) of messages that a rank waited for, except those that, owing to
    misaligned clocks, seem to be sent after the wait has ended."""
    for rank, one in enumerate(spans):
        others = record.partition.neighbours[rank]
        for k in one:
            for e in one[k]:
                sent = [s.end for q in others for s in spans[q][k] if s.phase == SEND]
                if e.phase == WAIT and sent and e.begin < max(sent) <= e.end:
                    yield max(record.partition.message_bytes[rank]), e.end - max(sent)


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
    own = outcome.finish - outcome.wait[:, SYNC]  # the barrier belongs to neither phase
    own += graph.residual * graph.iterations  # interruptions delay all ranks
    middle = times_of(record).middle
    recorded = middle[:, ASSEMBLY] + record.solve.iterations * middle[:, CG]
    return IdealRun(float(recorded.max()), float(own.max()))


def _free_of_messages(program: Program) -> Iterator[Event]:
    """The program without packing, sending and unpacking;
    messages stay, to be waited for."""
    for event in program:
        if isinstance(event, Loop):
            yield Loop(event.turns, tuple(_free_of_messages(event.body)))
        elif not (isinstance(event, Compute) and event.phase in OWN_MESSAGES):
            yield event
