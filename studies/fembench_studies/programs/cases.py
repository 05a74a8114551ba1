"""Cases of the small programs, and their predictions from a calibration."""

import functools
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from fembench.base.units import seconds
from fembench.errors import InputError
from fembench.model.closed_form import TimeRange
from fembench.synthetic.speeds import parse_speeds
from fembench_studies.pamela.costs import Conditionals
from fembench_studies.pamela.machine_model import MachineModel
from fembench_studies.pamela.program_models import Farm, keeping, machine_of, predict_farm
from fembench_studies.programs import graphs
from fembench_studies.programs.compute import glance_of
from fembench_studies.programs.record import AppCase, AppPrediction, AppRecord
from fembench_studies.programs.settings import ProgramSettings
from fembench_studies.programs.tasks import deal_tasks
from fembench_studies.programs.user_task import digest, is_farm, kernel_of
from fembench_studies.scheduling.execute import makespan, messages_of
from fembench_studies.scheduling.methods import METHODS
from fembench_studies.scheduling.platform import Platform
from fembench_studies.scheduling.task_graph import TaskGraph, hosts_in_turn, shape

UNITS = 20  # of work per task of a graph, about 10 ms each


def case_of(settings: ProgramSettings, calibration: AppRecord | None) -> AppCase:
    """The case of these settings; tasks are dealt by the speeds W of the
    calibration. Raises InputError."""
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
    if is_farm(settings.program):
        kernel, workers = kernel_of(settings.program), max(ranks - 1, 1)
        tasks, size = settings.tasks or kernel.tasks or workers, settings.size or kernel.size
        farm = AppCase(**common, tasks=tasks, size=size, code=digest(settings.program))
        if ranks == 1:
            return msgspec.structs.replace(farm, dealt=(tasks,))
        w = _factors(machine_of(calibration) if calibration else None, workers)
        return msgspec.structs.replace(farm, dealt=deal_tasks(w, tasks, settings.static))
    graph, case = _graph_case(settings, common)
    if settings.schedule == "turn":
        return case
    if calibration is None:
        raise InputError(f"--schedule {settings.schedule}: expected --model RECORD, a calibration")
    made = METHODS[settings.schedule](graph, _platform(case, calibration, _middle))
    return msgspec.structs.replace(case, order=made.order, host=made.host)


def _graph_case(settings: ProgramSettings, common: dict[str, Any]) -> tuple[TaskGraph, AppCase]:
    """A graph, and its case with the tasks on the ranks in turn."""
    graph = shape(settings.program, settings.tasks, settings.n_bytes)
    case = AppCase(
        **common,
        tasks=graph.n_tasks,
        size=settings.size or UNITS,
        n_bytes=settings.n_bytes,
        order=tuple(range(graph.n_tasks)),
        host=hosts_in_turn(graph, settings.ranks),
        edges=tuple((a, b) for a, b, _ in graph.edges),
        idle=tuple(t for t, work in enumerate(graph.work) if not work),
    )
    return graph, case


def _factors(machine: MachineModel | None, workers: int) -> list[float]:
    known = machine.factors if machine else {}
    return [known.get(p, min(known.values(), default=1.0)) for p in range(1, workers + 1)]


def predicted(case: AppCase, calibration: AppRecord) -> AppPrediction:
    """The run time predicted from the calibration, in closed form. Raises InputError."""
    if not is_farm(case.program):
        return _graph(case, calibration)
    if case.code != calibration.case.code:
        raise InputError(f"{calibration.id}: not a calibration of {case.program} as it is now")
    machine = _enlarged(machine_of(calibration), len(case.dealt))
    bytes_in, bytes_out = _bytes(case)
    kernel = kernel_of(case.program)
    farm = Farm(
        operations=kernel.counts(case.tasks, case.size),
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        kept=_beyond(case, calibration, machine),
        chance=kernel.chance(case.tasks, case.size) if kernel.chance else None,
        dealt=_all_dealt(case, machine),
        notice=notice(case),
    )
    prediction = predict_farm(farm, machine)
    return msgspec.structs.replace(prediction, model=calibration.id)


def other_speed(record: AppRecord, calibration: AppRecord, most: float, *, middle: bool = False) -> str:
    """Why an emulated run does not test what its calibration predicts: between repetitions,
    this machine did the same task faster or slower than ever in the calibration, by
    more than `most` (relative); "" if it did not, or nothing is emulated.

    `middle`: the prediction is of the median, so medians are compared.
    """
    ran, calibrated = _learned(record, calibration.case), _learned(calibration, calibration.case)
    ranks = min(len(ran), len(calibrated))
    if not ranks:
        return ""
    (low, high), (least, most_calibrated) = (_ends(one[:ranks], middle) for one in (ran, calibrated))
    worst = np.maximum(high / most_calibrated, least / low)
    rank = int(np.argmax(worst))
    if worst[rank] <= 1 + most:
        return ""
    now, then = ("{} to {}".format(*map(seconds, _ends(one, False)[:, rank])) for one in (ran, calibrated))
    return f"this machine did a task in {now} during the run, but in {then} when it was calibrated"


def _ends(times: npt.NDArray[np.float64], middle: bool) -> npt.NDArray[np.float64]:
    """(2, ranks) least and largest of (ranks, turns) times, or twice the median."""
    return np.quantile(times, (0.5, 0.5) if middle else (0, 1), axis=1)


def _learned(record: AppRecord, case: AppCase) -> npt.NDArray[np.float64]:
    """(ranks, turns) seconds of an average task of the case at full speed; (0, 0): not known."""
    each = [times * np.array(record.learned.get(name, ())) for name, times in _operations(case).items()]
    return np.sum(each, axis=0) if each and all(map(len, each)) else np.empty((0, 0))


def _operations(case: AppCase) -> dict[str, float]:
    """Operations of a task, on average."""
    if not is_farm(case.program):
        return {graphs.UNIT: float(case.size)}
    kernel = kernel_of(case.program)
    name, times, q = kernel.chance(case.tasks, case.size) if kernel.chance else ("", 0.0, 0.0)
    return {**kernel.counts(case.tasks, case.size), **({name: times * q} if name else {})}


def notice(case: AppCase) -> TimeRange:
    """Seconds until a waiting rank notices a message: 0 to
    the longest polling interval."""
    speeds = parse_speeds(case.emulate, case.ranks)
    return TimeRange(0.0, max(glance_of(case.dilate / s) for s in speeds))


def _bytes(case: AppCase) -> tuple[float, float]:
    """Bytes of the input and of the result of the middle task."""
    kernel, middle = kernel_of(case.program), case.tasks // 2
    into = kernel.make(middle, case.tasks, case.size, case.seed)
    return 8.0 * len(into), 8.0 * kernel.out(middle, case.tasks, case.size)


def _beyond(case: AppCase, calibration: AppRecord, machine: MachineModel) -> tuple[TimeRange, ...]:
    """[worker] seconds for which a task's messages occupy it, beyond the
    transit time of the result."""
    ranks = calibration.case.ranks
    bytes_in, bytes_out = _bytes(case)
    taking, answering = keeping(calibration.taking, ranks), keeping(calibration.answering, ranks)
    found = []
    for p in range(1, len(case.dealt) + 1):
        known, sent = min(p, ranks - 1), machine.message(p, 0, bytes_out)
        kept = taking.message(known, 0, bytes_in) + answering.message(known, 0, bytes_out)
        found.append(TimeRange(*sorted((max(kept.low - sent.low, 0.0), max(kept.high - sent.high, 0.0)))))
    return tuple(found)


def _all_dealt(case: AppCase, machine: MachineModel) -> tuple[int, ...]:
    """Tasks per worker; tasks dealt during the run go to idle
    workers, so in proportion to W."""
    if sum(case.dealt) == case.tasks:
        return case.dealt
    return deal_tasks([machine.factors[p] for p in range(1, len(case.dealt) + 1)], case.tasks)


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


def _platform(case: AppCase, calibration: AppRecord, end: Callable[[TimeRange], float]) -> Platform:
    """The ranks and their messages; `end` chooses a value of each interval."""
    machine = machine_of(calibration)

    @functools.cache
    def transfer(n_bytes: float) -> float:
        return end(machine.message(1, 0, n_bytes) + notice(case)) if case.ranks > 1 else 0.0

    unit = tuple(end(machine.cost("unit", p) * case.size) for p in range(case.ranks))
    return Platform(unit, messages_of(transfer, case.host, case.edges, case.costs))


def _graph(case: AppCase, calibration: AppRecord) -> AppPrediction:
    work = tuple(0.0 if t in case.idle else 1.0 for t in range(case.tasks))
    edges = tuple((a, b, float(case.n_bytes)) for a, b in case.edges)
    graph = TaskGraph(case.program, work, edges)
    low, high = (
        makespan(graph, _platform(case, calibration, end), case.order, case.host) for end in (_low, _high)
    )
    return AppPrediction(
        low=low,
        high=high,
        terms={"makespan": (low, high)},
        model=calibration.id,
        compose="HLogP",
        conditionals=Conditionals().policy,
    )


_low, _middle, _high = (attrgetter(name) for name in ("low", "middle", "high"))
