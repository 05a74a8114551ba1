"""Predictions of small programs by simulating their execution graphs, from the same calibration.

The coordinator of a farm sends all tasks and waits for results; a worker receives, computes and answers; a
task of a graph waits for its predecessors. Each of DRAWS simulated runs draws one calibration sample per rank
and operation; the interval is the middle nine tenths of the runs. Messages take the midpoints of their
intervals and leave a host one after another. Messages of a farm occupy its workers (Os, Or) for the
calibrated times. A waiting rank notices a message after half a polling interval on average.
"""

import random
from collections.abc import Mapping, Sequence

import numpy as np

from fembench.errors import InputError
from fembench.model.events import simulate_events
from fembench.model.graph import Compute, Event, ExecutionGraph, Receive, Send, Wait
from fembench.model.interval import TimeRange
from fembench.model.machine import Machine, checked_speeds
from fembench.model.plan import SimulationPlan
from fembench.model.planner import make_plan
from fembench.records.hlogp import MessageCost
from fembench.records.network import CurvePiece, PairClass
from fembench.records.prediction import SIMULATION
from fembench.synthetic.speeds import parse_speeds
from fembench_studies.pamela.machine_model import MachineModel
from fembench_studies.pamela.program_models import keeping, machine_of
from fembench_studies.programs.compute import glance_of
from fembench_studies.programs.kernels import Kernel
from fembench_studies.programs.record import AppCase, AppPrediction, AppRecord
from fembench_studies.programs.user_task import is_farm, kernel_of
from fembench_studies.scheduling.program_graphs import messages_of

DRAWS, SEED, TAIL = 40, 7, 0.05
COMPUTE, MESSAGE = range(2)
SEND, RECEIVE = 0, 2  # of an edge's cost
HEAD = 8.0  # bytes sent before the input and the result of a task


def simulated(case: AppCase, calibration: AppRecord, *, with_q: bool = True, cores: int = 0) -> AppPrediction:
    """The prediction of a future run. Raises InputError."""
    crowd = max(1.0, (case.ranks - 1) / cores) if cores and is_farm(case.program) else 1.0
    machine, known = machine_from(calibration, case), calibration.samples
    middle = {name: [float(np.median(row)) for row in rows] for name, rows in known.items()}
    expected = makespan(case, middle, machine, with_q, crowd)
    draw = random.Random(SEED)
    ends = []
    for _ in range(DRAWS):
        one = {name: [draw.choice(row) for row in rows] for name, rows in known.items()}
        ends.append(makespan(case, one, machine, with_q, crowd))
    low, high = np.quantile(ends, [TAIL, 1 - TAIL])
    return AppPrediction(
        low=min(float(low), expected),
        high=max(float(high), expected),
        terms={"makespan": (expected, expected)},
        model=calibration.id,
        compose="execution graph",
        conditionals="q" if with_q else "worst",
        method=SIMULATION,
    )


def notice(case: AppCase) -> TimeRange:
    """Seconds until a waiting rank notices a message: 0 to the longest polling interval."""
    speeds = parse_speeds(case.emulate, case.ranks)
    return TimeRange(0.0, max(glance_of(case.dilate / s) for s in speeds))


def makespan(
    case: AppCase, costs: Mapping[str, Sequence[float]], machine: Machine, with_q: bool, crowd: float = 1.0
) -> float:
    """Seconds of one simulated run. costs[operation][rank]; further ranks cost as much as the last."""
    seen = notice(case).high if is_farm(case.program) else 0.0  # for the first task and the last result
    return simulate_events(plan_of(case, costs, machine, with_q, crowd)).makespan + seen


def plan_of(
    case: AppCase, costs: Mapping[str, Sequence[float]], machine: Machine, with_q: bool, crowd: float = 1.0
) -> SimulationPlan:
    """The program's execution graph on the machine, ready for simulation."""
    made = _farm(case, costs, with_q, crowd) if is_farm(case.program) else _tasks(case, costs)
    return make_plan(
        ExecutionGraph(phases=("compute", "message"), programs=made, source=case.program), machine
    )


def _farm(
    case: AppCase, costs: Mapping[str, Sequence[float]], with_q: bool, crowd: float
) -> tuple[tuple[Event, ...], ...]:
    """Programs of the coordinator and the workers; tasks per rank in the order of dealing."""
    kernel, numbers = kernel_of(case.program), iter(range(case.tasks))
    own = [[next(numbers) for _ in range(n)] for n in case.dealt]
    if sum(case.dealt) != case.tasks or case.ranks == 1:
        raise InputError(
            "only farms that deal all tasks before the run, to at least one worker, can be simulated"
        )
    into = [
        round(HEAD + 8 * len(kernel.make(t, case.tasks, case.size, case.seed))) for t in (0, case.tasks - 1)
    ]
    n_bytes = max(into)
    master: list[Event] = [
        Send(p, n_bytes, MESSAGE, blocking=True) for p, tasks in enumerate(own, 1) for _ in tasks
    ]
    workers: list[tuple[Event, ...]] = []
    for p, tasks in enumerate(own, 1):
        seconds = crowd * task_seconds(kernel, case, costs, p, with_q)
        events: list[Event] = []
        for t in tasks:
            back = round(HEAD + 8 * kernel.out(t, case.tasks, case.size))
            events += [Receive(0, n_bytes, MESSAGE, blocking=True), Compute(COMPUTE, seconds)]
            events.append(Send(0, back, MESSAGE, blocking=True))
            master.append(Receive(p, back, MESSAGE, blocking=True))
        workers.append(tuple(events))
    return (tuple(master), *workers)


def task_seconds(
    kernel: Kernel, case: AppCase, costs: Mapping[str, Sequence[float]], rank: int, with_q: bool
) -> float:
    """Seconds of one task on a rank, its conditional weighted by Q or assumed true."""

    def cost(name: str) -> float:
        if name not in costs:
            raise InputError(f"operation '{name}': not in the calibration; expected one of {sorted(costs)}")
        return costs[name][min(rank, len(costs[name]) - 1)]

    seconds = sum(times * cost(name) for name, times in kernel.counts(case.tasks, case.size).items())
    if kernel.chance:
        name, most, q = kernel.chance(case.tasks, case.size)
        seconds += most * (q if with_q else 1.0) * cost(name)
    return seconds


def _tasks(case: AppCase, costs: Mapping[str, Sequence[float]]) -> tuple[tuple[Event, ...], ...]:
    """Programs of the ranks of a task graph."""
    if "unit" not in costs or len(costs["unit"]) < case.ranks:
        raise InputError(
            f"no samples of a unit of work on {case.ranks} ranks; expected a calibration of a graph"
        )
    programs: list[list[Event]] = [[] for _ in range(case.ranks)]
    for task in case.order:
        p = case.host[task]
        programs[p] += [
            _message(Receive, case, a, a, task) for a, b in case.edges if b == task and case.host[a] != p
        ]
        programs[p] += [*_inside(case, task, 1, RECEIVE), Wait(MESSAGE)]
        if task not in case.idle:
            programs[p].append(Compute(COMPUTE, case.units(task) * costs["unit"][p]))
        programs[p] += [
            _message(Send, case, b, task, b) for a, b in case.edges if a == task and case.host[b] != p
        ]
        programs[p] += _inside(case, task, 0, SEND)
    return tuple(map(tuple, programs))


def _inside(case: AppCase, task: int, end: int, part: int) -> list[Event]:
    """Time for which messages within the rank occupy a task as their sender (end 0) or receiver (end 1)."""
    seconds = sum(
        cost[part]
        for edge, cost in zip(case.edges, case.costs)
        if edge[end] == task and case.host[edge[0]] == case.host[edge[1]]
    )
    return [Compute(MESSAGE, seconds)] if seconds else []


def _message(kind: type[Send] | type[Receive], case: AppCase, peer: int, source: int, target: int) -> Event:
    tag = source * case.tasks + target
    n_bytes = case.edge_bytes()[source, target]
    return kind(case.host[peer], n_bytes, MESSAGE, tag, blocking=kind is Send)


def machine_from(calibration: AppRecord, case: AppCase) -> Machine:
    """A machine with one host per rank. Messages cost what the case says, else what was calibrated."""
    model, ranks = machine_of(calibration), case.ranks
    seen = 0.0 if is_farm(case.program) else notice(case).middle
    known = range(1, min(ranks, calibration.case.ranks))
    taking, answering = (keeping(s, known.stop) for s in (calibration.taking, calibration.answering))
    into, back = (
        {p: _pair(model, p, seen, kept, to) for p in known}
        for kept, to in ((taking, True), (answering, False))
    )

    def link(a: int, b: int) -> PairClass:
        classes = into if a < b else back
        return given.get((a, b)) or classes[min(max(a, b), max(classes))]

    transfer = model.message(1, 0, case.n_bytes).middle + seen if known and case.costs else 0.0
    cost = messages_of(lambda size: transfer, case.host, case.edges, case.costs)
    pairs = {(case.host[a], case.host[b]) for a, b in case.edges} if case.costs else set()
    given = {pair: _given(cost(case.n_bytes, *pair)) for pair in pairs}
    if ranks > 1 and not known:
        raise InputError("calibrated on one rank: expected a coordinator and at least one worker")
    return Machine(
        host=tuple(range(ranks)),
        names=tuple(f"rank {r}" for r in range(ranks)),
        link=link,
        speeds=checked_speeds((), ranks),
        contention=True,
    )


def _given(cost: MessageCost) -> PairClass:
    send, latency, receive = ((CurvePiece(first=0, coefficients=(seconds,)),) for seconds in cost)
    return PairClass(name="given", send=send, latency=latency, receive=receive)


def _pair(model: MachineModel, p: int, seen: float, keeps: MachineModel, to_worker: bool) -> PairClass:
    """Messages to or from rank p: they occupy the worker as long as `keeps` says; the rest of their time is
    latency. The part of their time that grows with their size occupies the network."""
    times = {n: model.message(p, 0, n).middle for n in sorted(model.sends[p, 0])}
    kept = {n: interval.middle for n, interval in keeps.sends[p, 0].items()}
    least, none = times[min(times)], (CurvePiece(first=0, coefficients=(0.0,)),)
    return PairClass(
        name=f"rank {p}",
        send=none if to_worker else _lines(kept),
        latency=_lines({n: max(t - keeps.message(p, 0, n).middle, 0.0) + seen for n, t in times.items()}),
        receive=_lines(kept) if to_worker else none,
        gap=_lines({n: max(t - least, 0.0) for n, t in times.items()}),
    )


def _lines(seconds: Mapping[int, float]) -> tuple[CurvePiece, ...]:
    """{bytes: seconds} as a piecewise linear curve that never decreases; the last piece extrapolates."""
    sizes = sorted(seconds)
    pieces = []
    for k, n in enumerate(sizes):
        after = min(k + 1, len(sizes) - 1)
        before = after - 1 if after else 0
        rise = seconds[sizes[after]] - seconds[sizes[before]]
        slope = max(rise / max(sizes[after] - sizes[before], 1), 0.0)
        pieces.append(CurvePiece(first=float(n), coefficients=(seconds[n], slope)))
    return tuple(pieces)
