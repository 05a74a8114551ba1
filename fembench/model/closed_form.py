"""Bounds on the time of assembly and CG, by interval arithmetic (Herai 2005, Eq. 3.4).

    T_0   critical path, if every resource is free at all times; a phase lasts as long as its slowest rank
    T_r   total demand on resource r of a host, each of whose servers serves one request at a time
    T     max(T_0, T_r, ...) of each phase, summed

All ranks wait for each other between two phases, so none starts the next early.

Intervals of seconds come first: their arithmetic, and of samples (2.2.3).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from fembench.base.errors import InputError


@dataclass(frozen=True, slots=True)
class TimeRange:
    """All values from `low` to `high`."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise InputError(f"interval [{self.low}; {self.high}]: expected low <= high")

    def __add__(self, other: "TimeRange | float") -> "TimeRange":
        o = as_interval(other)
        return TimeRange(self.low + o.low, self.high + o.high)

    __radd__ = __add__

    def __neg__(self) -> "TimeRange":
        return TimeRange(-self.high, -self.low)

    def __sub__(self, other: "TimeRange | float") -> "TimeRange":
        return self + -as_interval(other)

    def __rsub__(self, other: "TimeRange | float") -> "TimeRange":
        return as_interval(other) + -self

    def __mul__(self, other: "TimeRange | float") -> "TimeRange":
        if not isinstance(other, TimeRange) and other >= 0:
            return TimeRange(self.low * other, self.high * other)
        o = as_interval(other)
        ends = [a * b for a in (self.low, self.high) for b in (o.low, o.high)]
        return TimeRange(min(ends), max(ends))

    __rmul__ = __mul__

    def __truediv__(self, other: "TimeRange | float") -> "TimeRange":
        o = as_interval(other)
        if o.low <= 0 <= o.high:
            raise InputError(f"division by {o}: expected an interval without 0")
        return self * TimeRange(1 / o.high, 1 / o.low)

    def __rtruediv__(self, other: "TimeRange | float") -> "TimeRange":
        return as_interval(other) / self

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and self.low <= value <= self.high

    def __str__(self) -> str:
        return f"[{self.low:.6g}; {self.high:.6g}]"

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    @property
    def half_width(self) -> float:
        """Half the width, relative to the middle; 0 for [0; 0]."""
        return (self.high - self.low) / 2 / self.middle if self.middle else 0.0


ZERO = TimeRange(0.0, 0.0)


def as_interval(value: "TimeRange | float") -> TimeRange:
    """A number as the interval [x; x]; an interval unchanged."""
    return value if isinstance(value, TimeRange) else TimeRange(value, value)


def largest(values: Iterable["TimeRange | float"]) -> TimeRange:
    """The interval of the maximum. Raises ValueError for no values."""
    each = [as_interval(v) for v in values]
    return TimeRange(max(v.low for v in each), max(v.high for v in each))


def total(values: Iterable["TimeRange | float"]) -> TimeRange:
    """The interval of the sum; [0; 0] for no values."""
    low = high = 0.0
    for v in map(as_interval, values):
        low, high = low + v.low, high + v.high
    return TimeRange(low, high)


def shortest_window(samples: Sequence[float], keep: float) -> TimeRange:
    """The shortest, lowest interval with `keep` percent of the samples (Eqs 2.2, 2.3).

    Leaves out floor((100 - keep) N / 100) samples in all, at
    both ends. Raises InputError.
    """
    if not samples:
        raise InputError("interval of samples: there are none; expected at least one")
    if not 0 < keep <= 100:
        raise InputError(f"keep = {keep} %: expected more than 0 and up to 100")
    x = sorted(samples)
    left_out = min(math.floor((100 - keep) * len(x) / 100 + 1e-9), len(x) - 1)
    reach = len(x) - left_out - 1
    _, first = min((x[i + reach] - x[i], i) for i in range(left_out + 1))
    return TimeRange(x[first], x[first + reach])


Resource = Literal["core", "nic", ""]  # of a host; "": none; speeds include sharing of memory
Demand = dict[tuple[str, int], TimeRange]  # (resource, host) -> seconds


class Activity(NamedTuple):
    """An activity that every rank performs once in a phase."""

    name: str
    resource: Resource
    seconds: Sequence[TimeRange]  # (n_ranks,)


Phase = Sequence[Activity]  # activities that overlap; all end before the next phase


@dataclass(frozen=True)
class CgSet:
    """One assembly and the phases of a CG iteration, on hosts that ranks share."""

    assembly: Phase
    iteration: Sequence[Phase]
    allreduce: TimeRange  # of one all-reduce; no phase overlaps it
    allreduces: int  # per iteration
    host: Sequence[int]  # (n_ranks,)
    cores: Sequence[int]  # (n_hosts,)


class AtPrices(NamedTuple):
    """Seconds at the prices themselves."""

    seconds: float
    assembly: float
    iteration: float


@dataclass(frozen=True)
class ClosedForm:
    """Bounds in seconds, with their expression."""

    seconds: TimeRange  # assembly and all iterations
    assembly: TimeRange
    iteration: TimeRange
    iterations: int
    expression: str  # T = max(...) with each term in symbols
    terms: dict[str, TimeRange]  # their values over the run: T_0, T_core_0, T_nic_0, ...
    expected: AtPrices  # within the bounds; their middle, if only bounds are known

    @property
    def bottleneck(self) -> str:
        """The term with the largest midpoint."""
        return max(self.terms, key=lambda name: self.terms[name].middle)


def closed_form(work: CgSet, iterations: int) -> ClosedForm:
    """Bounds, expression and terms of assembly and `iterations`. Raises InputError."""
    _check(work, iterations)
    first = phase_seconds(work.assembly, work)
    turn = iteration_seconds(work)
    whole = first + turn * iterations
    middle = AtPrices(whole.middle, first.middle, turn.middle)
    return ClosedForm(whole, first, turn, iterations, expression(work), terms_of(work, iterations), middle)


def iteration_seconds(work: CgSet) -> TimeRange:
    """Bounds on one iteration, phase by phase."""
    return total(phase_seconds(phase, work) for phase in work.iteration) + _reducing(work)


def phase_seconds(phase: Phase, work: CgSet) -> TimeRange:
    """Bounds on a phase: the larger of critical path and demand on the busiest resource."""
    return largest([_path(phase), *_served(_demand(phase, work), work).values()])


def terms_of(work: CgSet, iterations: int) -> dict[str, TimeRange]:
    """T_0 and T_r of the whole run, by name; in 'T_core_1', 1 is the host."""
    path = _path(work.assembly) + (total(map(_path, work.iteration)) + _reducing(work)) * iterations
    once = _demand(work.assembly, work)
    each = _summed(_demand(phase, work) for phase in work.iteration)
    demand = _summed([once, {key: seconds * iterations for key, seconds in each.items()}])
    served = _served(demand, work).items()
    return {"T_0": path} | {f"T_{resource}_{host}": seconds for (resource, host), seconds in served}


def expression(work: CgSet) -> str:
    """T = max(...) in symbols: p is a rank, h a host, n the number of iterations."""
    resources = dict.fromkeys(a.resource for phase in (work.assembly, *work.iteration) for a in phase)
    lines = [f"  T_{r}[h] = {_demand_text(work, r)}" for r in resources if r]
    lines.append(f"  T_0 = {_path_text(work)}")
    return "T = max(\n" + ",\n".join(lines) + "\n)"


def _check(work: CgSet, iterations: int) -> None:
    if iterations < 0:
        raise InputError(f"{iterations} iterations; expected 0 or more")
    ranks = len(work.host)
    if not ranks:
        raise InputError("no ranks; expected at least one")
    for activity in (a for phase in (work.assembly, *work.iteration) for a in phase):
        if len(activity.seconds) != ranks:
            raise InputError(
                f"{activity.name}: {len(activity.seconds)} values; expected one per rank, {ranks}"
            )


def _path(phase: Phase) -> TimeRange:
    return largest(seconds for activity in phase for seconds in activity.seconds)


def _demand(phase: Phase, work: CgSet) -> Demand:
    """Seconds for which each resource of each host is used."""
    return _summed(
        {(activity.resource, host): seconds}
        for activity in phase
        if activity.resource
        for host, seconds in zip(work.host, activity.seconds)
    )


def _summed(demands: Iterable[Demand]) -> Demand:
    found: Demand = {}
    for demand in demands:
        for key, seconds in demand.items():
            found[key] = found.get(key, ZERO) + seconds
    return found


def _served(demand: Demand, work: CgSet) -> Demand:
    """Seconds until each resource has served its demand; a host has one network card."""
    return {
        (resource, host): seconds / work.cores[host] if resource == "core" else seconds
        for (resource, host), seconds in demand.items()
    }


def _reducing(work: CgSet) -> TimeRange:
    return work.allreduce * work.allreduces


def _demand_text(work: CgSet, resource: str) -> str:
    once = [f"{a.name}[p]" for a in work.assembly if a.resource == resource]
    each = [f"{a.name}[p]" for phase in work.iteration for a in phase if a.resource == resource]
    repeated = [f"n*({' + '.join(each)})" if len(each) > 1 else f"n*{each[0]}"] if each else []
    text = f"sum[p on h]({' + '.join(once + repeated)})"
    return f"{text} / cores[h]" if resource == "core" else text


def _path_text(work: CgSet) -> str:
    def longest(phase: Phase) -> str:
        return f"max[p]({', '.join(f'{a.name}[p]' for a in phase)})"

    reducing = [f"{work.allreduces}*allreduce"] if work.allreduces else []
    turn = " + ".join([*map(longest, work.iteration), *reducing])
    return f"{longest(work.assembly)} + n*({turn})"
