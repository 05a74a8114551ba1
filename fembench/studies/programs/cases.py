"""Cases of the small programs, and their predictions from a calibration."""

from dataclasses import replace
from typing import Any

import msgspec

from fembench.base.errors import InputError
from fembench.model.interval import TimeRange
from fembench.model.platform import Platform
from fembench.studies.pamela.costs import Conditionals
from fembench.studies.pamela.machine_model import MachineModel
from fembench.studies.pamela.program_models import Farm, keeping, machine_of, predict_farm
from fembench.studies.programs.kernels import KERNELS
from fembench.studies.programs.record import AppCase, AppPrediction, AppRecord
from fembench.studies.programs.settings import ProgramSettings
from fembench.studies.programs.simulated import notice, simulated
from fembench.studies.programs.tasks import deal_tasks
from fembench.studies.scheduling.program_graphs import hosts_in_turn, interval, messages_of, shape
from fembench.studies.scheduling.schedulers import METHODS
from fembench.studies.scheduling.task_graph import TaskGraph

UNITS = 20  # of work per task of a graph, about 10 ms each


def case_of(settings: ProgramSettings, calibration: AppRecord | None) -> AppCase:
    """The case of these settings; tasks are dealt by the calibrated speeds W. Raises InputError."""
    ranks = settings.ranks
    if ranks < 1 or settings.repetitions < 1 or min(settings.tasks, settings.size, settings.samples - 1) < 0:
        raise InputError("ranks, repetitions and samples: expected 1 or more; tasks and size: 0 or more")
    common: dict[str, Any] = {
        "program": settings.program,
        "ranks": ranks,
        "repetitions": settings.repetitions,
        "emulate": settings.emulate,
        "dilate": settings.dilate,
        "seed": settings.seed,
    }
    if settings.program in KERNELS:
        kernel, workers = KERNELS[settings.program], max(ranks - 1, 1)
        tasks, size = settings.tasks or kernel.tasks or workers, settings.size or kernel.size
        if ranks == 1:
            return AppCase(**common, tasks=tasks, size=size, dealt=(tasks,))
        w = _factors(calibration, workers)
        return AppCase(**common, tasks=tasks, size=size, dealt=deal_tasks(w, tasks, settings.static))
    graph = shape(settings.program, settings.tasks, settings.n_bytes)
    order, host = tuple(range(graph.n_tasks)), hosts_in_turn(graph, ranks)
    case = AppCase(
        **common,
        tasks=graph.n_tasks,
        size=settings.size or UNITS,
        n_bytes=settings.n_bytes,
        order=order,
        host=host,
        edges=tuple((a, b) for a, b, _ in graph.edges),
        idle=tuple(t for t, work in enumerate(graph.work) if not work),
    )
    if settings.schedule != "turn":
        if calibration is None:
            raise InputError(f"--schedule {settings.schedule}: expected --model RECORD, a calibration")
        made = METHODS[settings.schedule](graph, _platform(case, calibration))
        return msgspec.structs.replace(case, order=made.order, host=made.host)
    return case


def _factors(calibration: AppRecord | None, workers: int) -> list[float]:
    if calibration is None:
        return [1.0] * workers
    known = machine_of(calibration).factors
    return [known.get(p, min(known.values())) for p in range(1, workers + 1)]


def predicted(case: AppCase, calibration: AppRecord, settings: ProgramSettings) -> AppPrediction:
    """The run time predicted from the calibration, in closed form. Raises InputError."""
    if case.program not in KERNELS:
        return _graph(case, calibration)
    kernel = KERNELS[case.program]
    chance = kernel.chance(case.tasks, case.size) if kernel.chance else None
    middle = case.tasks // 2
    machine = _enlarged(machine_of(calibration), len(case.dealt))
    bytes_in = 8.0 * len(kernel.make(middle, case.tasks, case.size, case.seed))
    bytes_out = 8.0 * kernel.out(middle, case.tasks, case.size)
    farm = Farm(
        operations=kernel.counts(case.tasks, case.size),
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        kept=_beyond(calibration, machine, len(case.dealt), bytes_in, bytes_out),
        chance=chance,
        cores=settings.cores,
        dealt=_all_dealt(case, machine),
        notice=notice(case),
    )
    _, kept = predict_farm(farm, machine, compose=settings.compose, with_q=settings.policy == "q")
    return msgspec.structs.replace(kept, model=calibration.id)


def _beyond(
    calibration: AppRecord, machine: MachineModel, workers: int, bytes_in: float, bytes_out: float
) -> tuple[TimeRange, ...]:
    """[worker] seconds for which a task's messages occupy it, beyond the transit time of the result."""
    ranks = calibration.case.ranks
    taking, answering = keeping(calibration.taking, ranks), keeping(calibration.answering, ranks)
    found = []
    for p in range(1, workers + 1):
        known, sent = min(p, ranks - 1), machine.message(p, 0, bytes_out)
        kept = taking.message(known, 0, bytes_in) + answering.message(known, 0, bytes_out)
        found.append(TimeRange(*sorted((max(kept.low - sent.low, 0.0), max(kept.high - sent.high, 0.0)))))
    return tuple(found)


def _all_dealt(case: AppCase, machine: MachineModel) -> tuple[int, ...]:
    """Tasks per worker; tasks dealt during the run go to idle workers, so in proportion to W."""
    if sum(case.dealt) == case.tasks:
        return case.dealt
    return deal_tasks([machine.factors[p] for p in range(1, len(case.dealt) + 1)], case.tasks)


def both(
    case: AppCase, calibration: AppRecord, settings: ProgramSettings
) -> tuple[AppPrediction, AppPrediction | None]:
    """Predictions in closed form and, for task graphs and statically dealt farms, by simulation."""
    closed = predicted(case, calibration, settings)
    if case.ranks == 1 or (case.program in KERNELS and sum(case.dealt) < case.tasks):
        return closed, None
    with_q = settings.policy == "q"
    return closed, simulated(case, calibration, with_q=with_q, cores=settings.cores)


def _enlarged(machine: MachineModel, workers: int) -> MachineModel:
    """The model extended to more workers than were calibrated, all equal to the last."""
    known = sorted(p for p in machine.operations if p)
    if not known:
        raise InputError("calibrated on one rank: expected a coordinator and at least one worker")
    last, new = known[-1], range(known[-1] + 1, workers + 1)
    return replace(
        machine,
        operations={**machine.operations, **dict.fromkeys(new, machine.operations[last])},
        sends={**machine.sends, **{(p, 0): machine.sends[last, 0] for p in new}},
        factors={**machine.factors, **dict.fromkeys(new, machine.factors[last])},
    )


def _unit(case: AppCase, calibration: AppRecord) -> list[tuple[float, float]]:
    """[rank] seconds of computing per task."""
    machine = machine_of(calibration)
    each = [machine.cost("unit", p) * case.size for p in range(case.ranks)]
    return [(i.low, i.high) for i in each]


def _message(case: AppCase, calibration: AppRecord) -> tuple[float, float]:
    if case.ranks == 1:
        return 0.0, 0.0
    found = machine_of(calibration).message(1, 0, case.n_bytes) + notice(case)
    return found.low, found.high


def _platform(case: AppCase, calibration: AppRecord) -> Platform:
    unit, message = _unit(case, calibration), _message(case, calibration)
    messages = messages_of(sum(message) / 2, case.host, case.edges, case.costs)
    return Platform(tuple(sum(u) / 2 for u in unit), messages)


def _graph(case: AppCase, calibration: AppRecord) -> AppPrediction:
    work = tuple(0.0 if t in case.idle else 1.0 for t in range(case.tasks))
    graph = TaskGraph(case.program, work, tuple((a, b, float(case.n_bytes)) for a, b in case.edges))
    least, most = (messages_of(t, case.host, case.edges, case.costs) for t in _message(case, calibration))
    low, high = interval(graph, case.order, case.host, _unit(case, calibration), (least, most))
    return AppPrediction(
        low=low,
        high=high,
        terms={"makespan": (low, high)},
        model=calibration.id,
        compose="HLogP",
        conditionals=Conditionals().policy,
    )
