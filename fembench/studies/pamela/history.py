"""History: the latest samples of every operation on every machine, and the machine model that follows.

The thesis keeps a bounded first-in-first-out list of samples and the interval that contains most of them
(Herai 2005, 2.2 and Eqs 2.2, 2.3). It does not give the numbers; here they are 50 samples and 90 per cent.
"""

import msgspec

from fembench.base.errors import InputError
from fembench.model.interval import TimeRange, shortest_window
from fembench.studies.pamela.machine_model import MachineModel, Pair

KEPT, PERCENT = 50, 90.0


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
    percent: float = PERCENT  # of the samples inside the interval
    series: tuple[SampleSeries, ...] = ()
    factors: dict[int, float] = {}  # machine -> W


def add(history: History, new: SampleSeries) -> History:
    """The history with samples appended to one series, and its oldest dropped. Raises InputError."""
    if not all(s > 0 for s in new.samples):
        raise InputError(f"samples of {new.operation or 'a message'}: expected seconds above 0")
    key = (new.machine, new.operation, new.target, new.n_bytes)
    old = {(s.machine, s.operation, s.target, s.n_bytes): s for s in history.series}
    samples = (*(old[key].samples if key in old else ()), *new.samples)[-history.kept :]
    merged = old | {key: msgspec.structs.replace(new, samples=samples)}
    return msgspec.structs.replace(history, series=tuple(merged.values()))


def machine_model(history: History) -> MachineModel:
    """The interval of each series (Eqs 2.2, 2.3)."""
    operations: dict[int, dict[str, TimeRange]] = {}
    sends: dict[Pair, dict[int, TimeRange]] = {}
    for s in history.series:
        found = shortest_window(s.samples, history.percent)
        if s.target >= 0:
            sends.setdefault((s.machine, s.target), {})[s.n_bytes] = found
        else:
            operations.setdefault(s.machine, {})[s.operation] = found
    return MachineModel(operations, sends, history.factors)
