"""Intervals of seconds: their algebra and how samples become one (thesis-000, 2.2.3, Eqs 2.1 to 2.3)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fembench.base.errors import InputError


@dataclass(frozen=True, slots=True)
class Interval:
    """All values from `low` to `high`; a plain number is the interval of itself."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise InputError(f"interval [{self.low}; {self.high}]: expected low <= high")

    def __add__(self, other: "Interval | float") -> "Interval":
        o = as_interval(other)
        return Interval(self.low + o.low, self.high + o.high)

    __radd__ = __add__

    def __neg__(self) -> "Interval":
        return Interval(-self.high, -self.low)

    def __sub__(self, other: "Interval | float") -> "Interval":
        return self + -as_interval(other)

    def __rsub__(self, other: "Interval | float") -> "Interval":
        return as_interval(other) + -self

    def __mul__(self, other: "Interval | float") -> "Interval":
        if not isinstance(other, Interval) and other >= 0:
            return Interval(self.low * other, self.high * other)
        o = as_interval(other)
        ends = [a * b for a in (self.low, self.high) for b in (o.low, o.high)]
        return Interval(min(ends), max(ends))

    __rmul__ = __mul__

    def __truediv__(self, other: "Interval | float") -> "Interval":
        o = as_interval(other)
        if o.low <= 0 <= o.high:
            raise InputError(f"division by {o}: expected an interval without 0")
        return self * Interval(1 / o.high, 1 / o.low)

    def __rtruediv__(self, other: "Interval | float") -> "Interval":
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
        """Half the width over the middle; 0 of the interval [0; 0]."""
        return (self.high - self.low) / 2 / self.middle if self.middle else 0.0


ZERO = Interval(0.0, 0.0)


def as_interval(value: "Interval | float") -> Interval:
    """The interval of a plain number; an interval as it is."""
    return value if isinstance(value, Interval) else Interval(value, value)


def largest(values: Iterable["Interval | float"]) -> Interval:
    """The interval of the maximum: of the lower ends, and of the upper ends. Raises ValueError of none."""
    each = [as_interval(v) for v in values]
    return Interval(max(v.low for v in each), max(v.high for v in each))


def total(values: Iterable["Interval | float"]) -> Interval:
    """The interval of the sum; [0; 0] of none."""
    low = high = 0.0
    for v in map(as_interval, values):
        low, high = low + v.low, high + v.high
    return Interval(low, high)


def shortest_window(samples: Sequence[float], keep: float) -> Interval:
    """The shortest interval that holds `keep` per cent of the samples (Eqs 2.2, 2.3; the lowest of equals).

    floor((100 - keep) N / 100) samples are left out, at whichever ends they lie. Raises InputError.
    """
    if not samples:
        raise InputError("an interval of no samples: expected at least one")
    if not 0 < keep <= 100:
        raise InputError(f"keep = {keep} %: expected more than 0 and at most 100")
    x = sorted(samples)
    left_out = min(math.floor((100 - keep) * len(x) / 100 + 1e-9), len(x) - 1)
    reach = len(x) - left_out - 1
    _, first = min((x[i + reach] - x[i], i) for i in range(left_out + 1))
    return Interval(x[first], x[first + reach])
