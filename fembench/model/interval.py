"""Intervals of seconds: their arithmetic, and of samples (Herai 2005, 2.2.3)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
