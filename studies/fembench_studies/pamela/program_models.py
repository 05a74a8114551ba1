"""Predictions of the small programs: the machine model of a
calibration, and the model of a farm.

A worker computes its tasks in sequence and sends each result. Ranks poll for messages:
the first task and the last result wait to be noticed (`notice`), all others arrive
while their receivers compute. Receivers fetch messages longer than a few kilobytes, so
taking a task and answering occupy the worker (`kept`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fembench.errors import InputError
from fembench.model.closed_form import ZERO, TimeRange
from fembench_studies.pamela import pamela_text
from fembench_studies.pamela.bounds import Setting, predict
from fembench_studies.pamela.costs import Conditionals
from fembench_studies.pamela.history import History, machine_model, of_ranks, relative_speeds
from fembench_studies.pamela.machine_model import MachineModel
from fembench_studies.programs.record import AppPrediction, AppRecord, Samples

FARM = """L=L_1;L_2;L_3
L_1={{ par(p=1,P){{ seq(i=1,S[1,p]){{ use(net,send[COORD,p](dataSizeIn(task[1,0]))); }} }} }}
L_2={{ par(p=1,P){{ seq(i=1,S[1,p]){{
  use(p,task[1,0](p)); use(net,send[p,COORD](dataSizeOut(task[1,0]))); delay(kept[p]); }} }} }}
L_3={{ delay(2*notice[1]); }}
Work={{ {certain} {chance} }}
task[1]=Work;
dataSizeIn(task[1])={bytes_in:.0f};
dataSizeOut(task[1])={bytes_out:.0f};
"""


@dataclass(frozen=True)
class Farm:
    """A farm program; all its tasks are equal."""

    operations: Mapping[str, float]  # unconditional operations of a task
    bytes_in: float
    bytes_out: float
    chance: tuple[str, float, float] | None = None  # conditional operation, its largest number, Q
    notice: TimeRange = ZERO  # seconds until a waiting rank notices a message
    dealt: tuple[int, ...] = ()  # [worker] tasks
    kept: tuple[
        TimeRange, ...
    ] = ()  # [worker] seconds for which a task's messages occupy it, beyond its result


def machine_of(record: AppRecord) -> MachineModel:
    """The machine model of a calibration; machine p is rank p. Raises
    InputError for any other record."""
    if not record.samples:
        raise InputError(
            f"{record.id}: not a calibration; expected a record of `fembench study app … --calibrate`"
        )
    history = of_ranks(History(), record.samples, record.messages)
    return replace(machine_model(history), factors=relative_speeds(history))


def keeping(samples: Samples, ranks: int) -> MachineModel:
    """Times for which messages occupy workers (`taking` or `answering`) as
    messages; 0 if not sampled."""
    if samples:
        return machine_model(of_ranks(History(), {}, samples))
    return MachineModel({}, {(p, 0): {0: ZERO} for p in range(1, ranks)})


def model_text(farm: Farm) -> str:
    """The model of a farm as PAMELA."""
    certain = " ".join(f"{n:.10g}*{name};" for name, n in farm.operations.items())
    chance = ""
    if farm.chance:
        name, times, _ = farm.chance
        chance = f"seq(k=1,{times:.0f}){{ if[{name}]{{ {name}; }} }}"
    return FARM.format(certain=certain, chance=chance, bytes_in=farm.bytes_in, bytes_out=farm.bytes_out)


def predict_farm(farm: Farm, machine: MachineModel) -> AppPrediction:
    """The prediction for the record, bounded phase by phase, conditionals by
    their Q. Raises InputError."""
    workers = len(farm.dealt)
    decided = Conditionals("q", {farm.chance[0]: farm.chance[2]}) if farm.chance else Conditionals()
    setting = Setting(
        pamela_text.parse(model_text(farm), "farm"),
        machine,
        workers,
        {1: dict(enumerate(farm.dealt, 1))},
        decided,
        costs={
            "notice": {1: farm.notice},
            "kept": dict(enumerate(farm.kept or (ZERO,) * workers, 1)),
        },
    )
    found = predict(setting, "phase")
    return AppPrediction(
        low=found.seconds.low,
        high=found.seconds.high,
        terms={name: (t.low, t.high) for name, t in found.terms.items()},
        model="",
        compose="phase",
        conditionals=decided.policy,
    )
