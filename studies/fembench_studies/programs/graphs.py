"""Task graphs on ranks: ring, fork, join, diamond, fork-join (Mendes 2004, F12).

A task waits for its predecessors, does its work, and sends to its successors. The
value it sends is one more than the sum of the values received, so the result shows
that every message arrived.
"""

import functools
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fembench.kernels.backend import kernels
from fembench_studies.programs.compute import Array, Worker
from fembench_studies.programs.record import AppCase

UNIT, ROUND = "unit", "round"  # of work
ROUNDS, LENGTH = 100, 8_000  # rounds of one unit, and numbers
VALUE, DUE = 0, 1  # entries of a message: its value, and the earliest time to receive it, ns
FREE = (0.0, 0.0, 0.0)
Edge = tuple[int, int]


def burn(units: int) -> float:
    """Do this many identical units of work."""
    return burn_rounds(units * ROUNDS)


def burn_rounds(rounds: int) -> float:
    """Do this many identical rounds of work, a few microseconds each, in the cache."""
    x = _numbers()
    for _ in range(rounds):
        x *= 0.999
        x += 1e-6
    return float(x[0])


@functools.cache
def _numbers() -> Array:
    x = kernels.empty(LENGTH)  # aligned; otherwise the time of a round varies between processes
    x[:] = np.linspace(0.0, 1.0, LENGTH)
    return x


def run(worker: Worker, case: AppCase) -> tuple[float, float]:
    """(value of the graph's last task on its rank, 0 elsewhere; end of this
    rank's last task). Collective.

    The end is in seconds of perf_counter. Receives are posted in advance and sends do
    not block, so no order of tasks can deadlock. If the case gives the cost of an edge
    (Os, L, Or of HLogP), it is emulated: the message carries the time at which it is
    due, so all ranks must share a clock, that is, a machine.
    """
    comm, n, me = worker.comm, len(case.order), worker.comm.rank
    cost = dict(zip(case.edges, case.costs or (FREE,) * len(case.edges)))
    remote = [e for e in case.edges if case.host[e[0]] != case.host[e[1]]]
    inbox = {e: _message(case.n_bytes) for e in remote if case.host[e[1]] == me}
    coming = {e: comm.Irecv(data, case.host[e[0]], tag(*e, n)) for e, data in inbox.items()}
    values: dict[int, float] = {}
    outbox: dict[Edge, Array] = {}  # messages, including those to tasks of this rank, which are not sent
    sent, done = [], 0.0
    for task in case.order:
        if case.host[task] != me:
            continue
        value = 1.0
        waiting = {e: coming.get(e) for e in case.edges if e[1] == task}
        for edge in _arrived(worker, waiting, inbox | outbox):
            value += float((inbox | outbox)[edge][VALUE])
            worker.hold(cost[edge][2])
        if task not in case.idle:
            worker.compute(UNIT, case.size, burn, case.size)
            worker.done += 1
        values[task], done = value, time.perf_counter()
        for edge in [e for e in case.edges if e[0] == task]:
            send, latency, _ = cost[edge]
            outbox[edge] = _message(case.n_bytes, value, worker.after(send + latency) if case.costs else 0.0)
            if edge in remote:
                sent.append(comm.Isend(outbox[edge], case.host[edge[1]], tag(*edge, n)))
            worker.hold(send)
    for request in sent:
        worker.finished(request)
    return values.get(n - 1, 0.0), done


class ProgramStep(NamedTuple):
    """A task on this rank, with its messages: (other rank, tag)."""

    task: int
    idle: bool
    local: list[int]  # predecessors on this rank
    receives: list[tuple[int, int]]
    sends: list[tuple[int, int]]
    ready: bool = False  # for the next message as soon as it has received: it is idle and does not send


class Room:
    """The steps of this rank, and its buffers: one to receive and one to send, which
    all messages use, as in a solver. Made and touched before the run is timed, so that
    the run's loop does as little as possible."""

    def __init__(self, case: AppCase, rank: int) -> None:
        length = max(case.n_bytes // 8, 2)
        self.into, self.out = np.ones(length), np.ones(length)
        self.received = self.into.data  # whose numbers are read faster
        self.steps = [_step(case, task, rank) for task in case.order if case.host[task] == rank]


def _step(case: AppCase, task: int, rank: int) -> ProgramStep:
    n, host = len(case.order), case.host
    before = [a for a, b in case.edges if b == task]
    after = [b for a, b in case.edges if a == task]
    sends = [(host[b], tag(task, b, n)) for b in after if host[b] != rank]
    return ProgramStep(
        task,
        task in case.idle,
        [a for a in before if host[a] == rank],
        [(host[a], tag(a, task, n)) for a in before if host[a] != rank],
        sends,
        task in case.idle and not sends,
    )


def run_calls(worker: Worker, case: AppCase, room: Room) -> tuple[float, float]:
    """As `run`, but with the MPI calls that `characterize --network` times. Collective.

    Messages are sent by MPI_Isend or MPI_Send; a waiting rank probes, and receives
    in the order of the tasks. A rank is busy from its last receive to its first send.
    """
    comm, into, out, received = worker.comm, room.into, room.out, room.received
    probe, receive, blocking = comm.Probe, comm.Recv, case.calls == "send"
    values: dict[int, float] = {}
    sent: list[Any] = []
    done = 0.0
    for step in room.steps:
        value = 1.0
        if step.receives and sent:
            _finish(sent)  # while it would wait anyway
        for source, number in step.receives:
            probe(source, number)
            receive(into, source, number)
            value += received[VALUE]
        if step.ready:
            done = time.perf_counter()
            values[step.task] = value + sum(map(values.__getitem__, step.local)) if step.local else value
            continue
        begin = time.perf_counter()
        compute(step, value, values, case.size, out, sent)
        done = time.perf_counter()
        if not step.idle:
            worker.busy += done - begin
            worker.done += 1
        for target, number in step.sends:
            if blocking:
                comm.Send(out, target, number)
            else:
                sent.append(comm.Isend(out, target, number))
    _finish(sent)
    return values.get(len(case.order) - 1, 0.0), done


def compute(
    step: ProgramStep, value: float, values: dict[int, float], rounds: int, out: Array, sent: list[Any]
) -> None:
    """What a rank does between its last receive and its first send of a task; `value`: received."""
    value += sum(map(values.__getitem__, step.local))
    if not step.idle:
        burn_rounds(rounds)
    values[step.task] = value
    if step.sends and out[VALUE] != value:
        _finish(sent)  # the buffer is free
        out[VALUE] = value


def _finish(sent: list[Any]) -> None:
    for request in sent:
        request.Wait()
    sent.clear()


def _arrived(worker: Worker, waiting: dict[Edge, Any], data: dict[Edge, Array]) -> Iterator[Edge]:
    """Edges in the order in which their messages are due; the request None is complete."""
    while waiting:
        here = [e for e, request in waiting.items() if request is None or request.Test()]
        for edge in here:
            waiting[edge] = None
        first = min(here, key=lambda e: data[e][DUE], default=None)
        if first is None:
            worker.look_away()
        elif worker.due(float(data[first][DUE])):
            del waiting[first]
            yield first


def tag(source: int, target: int, n_tasks: int) -> int:
    """The tag of an edge."""
    return source * n_tasks + target


def _message(n_bytes: int, value: float = 0.0, due: float = 0.0) -> Array:
    data = np.zeros(max(n_bytes // 8, 2))
    data[VALUE], data[DUE] = value, due
    return data


def expected(n_tasks: int, edges: Sequence[tuple[int, int]]) -> float:
    """The expected value of the last task, computed serially."""
    values: list[float] = []
    for task in range(n_tasks):
        values.append(1.0 + sum(values[a] for a, b in edges if b == task))
    return values[-1]
