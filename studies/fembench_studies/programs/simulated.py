"""The execution graph of a farm that deals all its tasks before the
run, priced from a calibration.

The coordinator sends all tasks and waits for results; a worker receives, computes and
answers. Messages take the midpoints of their intervals, leave a host one after another,
and occupy the workers (Os, Or) for the calibrated times.
"""

from collections.abc import Mapping, Sequence

from fembench.errors import InputError
from fembench.model.graph import Compute, Event, ExecutionGraph, Receive, Send
from fembench.model.machine import Machine, checked_speeds
from fembench.model.plan import SimulationPlan
from fembench.model.planner import make_plan
from fembench.records.network import CurvePiece, PairClass
from fembench_studies.pamela.machine_model import MachineModel
from fembench_studies.pamela.program_models import keeping, machine_of
from fembench_studies.programs.record import AppCase, AppRecord
from fembench_studies.programs.user_task import kernel_of

COMPUTE, MESSAGE = range(2)
HEAD = 8.0  # bytes sent before the input and the result of a task
Costs = Mapping[str, Sequence[float]]  # operation -> [rank] seconds; further ranks cost as much as the last


def plan_of(case: AppCase, costs: Costs, machine: Machine) -> SimulationPlan:
    """The farm's execution graph on the machine, ready for simulation."""
    graph = ExecutionGraph(phases=("compute", "message"), programs=_farm(case, costs), source=case.program)
    return make_plan(graph, machine)


def _farm(case: AppCase, costs: Costs) -> tuple[tuple[Event, ...], ...]:
    """Programs of the coordinator and the workers; tasks per
    rank in the order of dealing."""
    kernel, numbers = kernel_of(case.program), iter(range(case.tasks))
    own = [[next(numbers) for _ in range(n)] for n in case.dealt]
    if sum(case.dealt) != case.tasks or case.ranks == 1:
        raise InputError(
            "only farms that deal all tasks before the run, to at least one worker, can be simulated"
        )
    into = (len(kernel.make(t, case.tasks, case.size, case.seed)) for t in (0, case.tasks - 1))
    n_bytes = round(HEAD + 8 * max(into))
    master: list[Event] = [
        Send(p, n_bytes, MESSAGE, blocking=True) for p, tasks in enumerate(own, 1) for _ in tasks
    ]
    workers: list[tuple[Event, ...]] = []
    for p, tasks in enumerate(own, 1):
        counts = kernel.counts(case.tasks, case.size)
        seconds = sum(times * costs[name][min(p, len(costs[name]) - 1)] for name, times in counts.items())
        events: list[Event] = []
        for t in tasks:
            back = round(HEAD + 8 * kernel.out(t, case.tasks, case.size))
            events += [Receive(0, n_bytes, MESSAGE, blocking=True), Compute(COMPUTE, seconds)]
            events.append(Send(0, back, MESSAGE, blocking=True))
            master.append(Receive(p, back, MESSAGE, blocking=True))
        workers.append(tuple(events))
    return (tuple(master), *workers)


def machine_from(calibration: AppRecord, case: AppCase) -> Machine:
    """A machine with one host per rank, whose messages cost what was
    calibrated. Raises InputError."""
    model, ranks = machine_of(calibration), case.ranks
    known = range(1, min(ranks, calibration.case.ranks))
    if not known:
        raise InputError("calibrated on one rank: expected a coordinator and at least one worker")
    taking, answering = (keeping(s, known.stop) for s in (calibration.taking, calibration.answering))
    into, back = (
        {p: _pair(model, p, kept, to) for p in known} for kept, to in ((taking, True), (answering, False))
    )

    def link(a: int, b: int) -> PairClass:
        classes = into if a < b else back
        return classes[min(max(a, b), max(classes))]

    return Machine(
        host=tuple(range(ranks)),
        names=tuple(f"rank {r}" for r in range(ranks)),
        link=link,
        speeds=checked_speeds((), ranks),
        contention=True,
    )


def _pair(model: MachineModel, p: int, keeps: MachineModel, to_worker: bool) -> PairClass:
    """Messages to or from rank p: they occupy the worker as long as `keeps` says;
    the rest of their time is latency. The part of their time that grows with their
    size occupies the network."""
    times = {n: model.message(p, 0, n).middle for n in sorted(model.sends[p, 0])}
    kept = {n: interval.middle for n, interval in keeps.sends[p, 0].items()}
    least, none = times[min(times)], (CurvePiece(first=0, coefficients=(0.0,)),)
    return PairClass(
        name=f"rank {p}",
        send=none if to_worker else _lines(kept),
        latency=_lines({n: max(t - keeps.message(p, 0, n).middle, 0.0) for n, t in times.items()}),
        receive=_lines(kept) if to_worker else none,
        gap=_lines({n: max(t - least, 0.0) for n, t in times.items()}),
    )


def _lines(seconds: Mapping[int, float]) -> tuple[CurvePiece, ...]:
    """{bytes: seconds} as a piecewise linear curve that never decreases;
    the last piece extrapolates."""
    sizes = sorted(seconds)
    pieces = []
    for k, n in enumerate(sizes):
        after = min(k + 1, len(sizes) - 1)
        before = after - 1 if after else 0
        rise = seconds[sizes[after]] - seconds[sizes[before]]
        slope = max(rise / max(sizes[after] - sizes[before], 1), 0.0)
        pieces.append(CurvePiece(first=float(n), coefficients=(seconds[n], slope)))
    return tuple(pieces)
