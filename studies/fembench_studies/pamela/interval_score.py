"""Distances of measured times from predicted intervals (Herai 2005, Eqs 5.2 and 5.3)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fembench.model.closed_form import TimeRange


def error(measured: float, predicted: TimeRange) -> float:
    """0 inside the interval; outside, the distance divided by its midpoint,
    negative below it (Eq. 5.2)."""
    if measured in predicted:
        return 0.0
    end = predicted.high if measured > predicted.high else predicted.low
    return (measured - end) / predicted.middle


@dataclass(frozen=True)
class IntervalScore:
    """The score of measurements against their intervals, as fractions."""

    errors: tuple[float, ...]
    mean_error: float  # of |E|, Eq. 5.3
    middle_error: float  # mean |measured - middle| / measured, which a wider interval does not lower
    half_width: float  # mean over the measurements

    @property
    def hits(self) -> int:
        """Number of measurements inside their interval."""
        return sum(e == 0 for e in self.errors)


def score(measured: Sequence[float], predicted: Sequence[TimeRange]) -> IntervalScore:
    """The score of (n,) measurements against (n,) intervals, n >= 1."""
    errors = tuple(error(x, p) for x, p in zip(measured, predicted, strict=True))
    return IntervalScore(
        errors=errors,
        mean_error=float(np.mean(np.abs(errors))),
        middle_error=float(np.mean([abs(x - p.middle) / x for x, p in zip(measured, predicted)])),
        half_width=float(np.mean([p.half_width for p in predicted])),
    )
