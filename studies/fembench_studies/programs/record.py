"""Record of a small parallel program (`fembench study app`): case,
predictions, times and correctness.

Schema history:
    1  first; newer, may miss: `taking`, `answering`, `learned`, `pace`, `invalid`; a prediction's `method`
"""

from pathlib import Path
from typing import Literal

import msgspec

from fembench.base.config import json_text
from fembench.base.files import write_atomic
from fembench.records.prediction import ANALYTIC
from fembench.records.quiet import OTHERS
from fembench.records.record import Environment, Frozen, check_id
from fembench.records.schema import read

APP_SCHEMA = 1
Samples = dict[str, tuple[tuple[float, ...], ...]]


class AppCase(Frozen, frozen=True):
    """Everything that determines the work of a program."""

    program: str  # pi, primes, …; ring, fork, …; or the file of a user's own task
    ranks: int
    tasks: int = 0  # of a farm
    size: int = 0  # points, numbers or rows, of all tasks or of one, depending on the program
    n_bytes: int = 0  # per message between tasks of a graph
    dealt: tuple[int, ...] = ()  # [worker] tasks dealt before the run (Eq. 3.6)
    order: tuple[int, ...] = ()  # of the tasks of a graph
    host: tuple[int, ...] = ()  # [task of a graph] -> rank
    edges: tuple[tuple[int, int], ...] = ()
    idle: tuple[int, ...] = ()  # tasks of a graph that only receive and send
    costs: tuple[tuple[float, float, float], ...] = ()  # [edge] Os, L, Or in seconds (SYNTHETIC); (): real
    # isend, send: messages of a graph use the calls that `characterize --network` times; ranks wait in MPI.
    # "": sends do not block, and receivers poll
    calls: Literal["", "isend", "send"] = ""
    repetitions: int = 3
    emulate: str = ""  # speed of each rank (SYNTHETIC)
    dilate: float = 1.0
    seed: int = 0
    code: str = ""  # of a user's own task: the beginning of the SHA-256 of its file


class AppPrediction(Frozen, frozen=True):
    """A prediction, written before the run."""

    low: float  # seconds
    high: float
    terms: dict[str, tuple[float, float]]
    model: str  # source of the machine model
    compose: str
    conditionals: str
    method: str = ANALYTIC


class AppRecord(Frozen, frozen=True):
    """One job."""

    schema: int
    id: str
    created: str  # ISO 8601, UTC
    case: AppCase
    environment: Environment
    predicted: AppPrediction | None
    seconds: tuple[float, ...]  # [repetition] from the barrier to the end of the last task
    busy: tuple[tuple[float, ...], ...]  # [rank][repetition] seconds of computing
    done: tuple[tuple[int, ...], ...]  # [rank][repetition] tasks
    value: float  # the result of the program
    error: float  # of the result, relative to the tolerance; correct up to 1
    samples: Samples  # calibration: operation -> [rank] -> seconds
    messages: Samples  # calibration: bytes -> [rank] -> seconds to rank 0
    # calibration of a farm: bytes -> [rank] -> seconds for which a worker is occupied by
    taking: Samples = msgspec.field(default_factory=dict)  # receiving a task that has arrived
    answering: Samples = msgspec.field(default_factory=dict)  # sending a result until it is received
    # emulated speeds: operation -> [rank] -> seconds at full speed, each time that it was learned: in turns
    # of a calibration; before each repetition of a run, and after the last one
    learned: Samples = msgspec.field(default_factory=dict)
    pace: tuple[float, ...] = ()  # [rank] seconds of a unit of work before the rest, all ranks at once
    invalid: str = ""  # why the run tests no prediction

    def __post_init__(self) -> None:
        check_id(self.id)


def unfit(record: AppRecord) -> str:
    """Why a run judges nothing: its value is wrong, or others
    disturbed it; "" if it may."""
    if record.error > 1:
        return "the program found a wrong value"
    busy = max(record.environment.hosts, key=lambda h: h.others_percent - h.others_resolution, default=None)
    return used_by_others(busy.others_percent, busy.others_resolution, busy.name) if busy else ""


def used_by_others(percent: float, resolution: float, where: str) -> str:
    """That others certainly used more than they may; "" if they
    did not, or it is unknown."""
    if percent - resolution <= OTHERS:
        return ""
    return f"others used {percent:.0f} % of the ranks' processor time on {where} (at most {OTHERS:g} %)"


def save_app(record: AppRecord, path: Path | str) -> None:
    """Write a record as JSON, atomically."""
    write_atomic(path, json_text(record))


def load_app(path: Path | str) -> AppRecord:
    """The record in a file. Raises InputError for anything else."""
    return read(path, AppRecord, APP_SCHEMA, "a record of a program", has="busy", verb="study app")
