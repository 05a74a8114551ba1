"""History: the latest samples of every operation on every machine, and the
machine model that follows.

The thesis keeps a bounded first-in-first-out list of samples and the interval that
contains most of them (Herai 2005, 2.2 and Eqs 2.2, 2.3). It does not give the numbers;
here they are 50 samples and 90 per cent.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import msgspec

from fembench.base.tables import table
from fembench.base.units import seconds
from fembench.errors import InputError
from fembench.model.closed_form import TimeRange, shortest_window
from fembench_studies.pamela.machine_model import MachineModel, Pair, as_text
from fembench_studies.pamela.operations_job import OperationsFound

KEPT, PERCENT = 50, 90.0  # samples per series; share of them inside the interval


class SampleSeries(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Samples of one operation or message on one machine, in seconds, oldest first."""

    machine: int
    operation: str = ""
    target: int = -1  # of a message; -1: an operation
    n_bytes: int = 0
    samples: tuple[float, ...] = ()


class History(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All series of a set of machines."""

    kept: int = KEPT  # samples per series
    series: tuple[SampleSeries, ...] = ()
    factors: dict[int, float] = {}  # machine -> W
    machines: tuple[str, ...] = ()  # their names
    synthetic: str = ""  # how heterogeneity was emulated (rule E8)


def add(history: History, new: SampleSeries) -> History:
    """The history with samples appended to one series, and its oldest
    dropped. Raises InputError."""
    if not all(s > 0 for s in new.samples):
        raise InputError(f"samples of {new.operation or 'a message'}: expected seconds above 0")
    key = (new.machine, new.operation, new.target, new.n_bytes)
    old = {(s.machine, s.operation, s.target, s.n_bytes): s for s in history.series}
    samples = (*(old[key].samples if key in old else ()), *new.samples)[-history.kept :]
    merged = old | {key: msgspec.structs.replace(new, samples=samples)}
    return msgspec.structs.replace(history, series=tuple(merged.values()))


def of_ranks(
    history: History, operations: Mapping[str, Sequence], messages: Mapping[Any, Sequence]
) -> History:
    """The history with samples of ranks: operation -> [rank] samples, bytes
    -> [rank] samples to rank 0."""
    for name, rows in operations.items():
        for p, row in enumerate(rows):
            history = add(history, SampleSeries(machine=p, operation=name, samples=row))
    for n_bytes, rows in messages.items():
        for p, row in enumerate(rows[1:], 1):
            history = add(history, SampleSeries(machine=p, target=0, n_bytes=int(n_bytes), samples=row))
    return history


def machine_model(history: History) -> MachineModel:
    """The interval of each series (Eqs 2.2, 2.3)."""
    operations: dict[int, dict[str, TimeRange]] = {}
    sends: dict[Pair, dict[int, TimeRange]] = {}
    for s in history.series:
        found = shortest_window(s.samples, PERCENT)
        if s.target >= 0:
            sends.setdefault((s.machine, s.target), {})[s.n_bytes] = found
        else:
            operations.setdefault(s.machine, {})[s.operation] = found
    return MachineModel(operations, sends, history.factors)


def with_samples(history: History, found: OperationsFound) -> History:
    """The history with new samples, if any, of the same machines; machine p is
    rank p. Raises InputError."""
    if not any(rows[0] for rows in found.operations.values()):
        return history
    now = found.machines, found.synthetic
    if history.series and (history.machines, history.synthetic) != now:
        known = ", ".join((*history.machines, history.synthetic)).rstrip(", ")
        raise InputError(
            f"samples of {', '.join(found.machines)}; expected the machines of the history: {known}"
        )
    history = of_ranks(history, found.operations, found.messages)
    return msgspec.structs.replace(
        history, machines=now[0], synthetic=now[1], factors=relative_speeds(history)
    )


def model_text(history: History) -> str:
    """The machine file of a history."""
    label = f"SYNTHETIC: {history.synthetic}; " if history.synthetic else ""
    head = f"{label}intervals of {PERCENT:g} % of the last {history.kept} samples at most"
    return as_text(machine_model(history), history.machines, head)


def summary(history: History) -> str:
    """The machines with their relative speeds, and the intervals
    of operations and messages."""
    model, rows = machine_model(history), []
    for s in history.series:
        if s.machine == (0 if s.target < 0 else 1):
            name = s.operation or f"message of {s.n_bytes} bytes"
            same = [
                model.cost(name, p) if s.operation else model.message(p, 0, s.n_bytes)
                for p in model.operations
                if s.operation or p
            ]
            low, high = min(i.low for i in same), max(i.high for i in same)
            rows.append([name, seconds(low), seconds(high), len(s.samples)])
    machines = [[p, name, model.factors.get(p)] for p, name in enumerate(history.machines)]
    return "\n\n".join(
        [
            *([f"SYNTHETIC: {history.synthetic}"] if history.synthetic else []),
            table(["machine", "host", "relative speed W"], machines, align="llr"),
            table(["on all machines", "from", "to", "samples"], rows, align="lrrr"),
        ]
    )


def relative_speeds(history: History) -> dict[int, float]:
    """W of each worker: its speed relative to the fastest, from the medians
    of all operations (Eq. 3.5)."""
    took = {(s.machine, s.operation): median(s.samples) for s in history.series if s.target < 0}
    workers = {p for p, _ in took if p} or {0}
    names = {name for _, name in took}
    best = {name: min(took[p, name] for p in workers) for name in names}
    slow = {p: sum(took[p, name] / best[name] for name in names) for p in sorted(workers)}
    return {p: min(slow.values()) / t for p, t in slow.items()}
