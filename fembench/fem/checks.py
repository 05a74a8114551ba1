"""Checks that the structs of a problem share."""

import math
from collections.abc import Iterable

from fembench.base.errors import InputError

SMALLEST, LARGEST = 1e-30, 1e30  # float64 holds their squares
Vector = tuple[float, float, float]


class SpecError(InputError, ValueError):
    """A value of a problem is out of range; a ValueError, so msgspec adds the place."""


def in_range(name: str, values: Iterable[float]) -> None:
    """Raise SpecError unless the values are finite, and all 0 or the largest within range."""
    shown = tuple(values)
    largest = max(map(abs, shown), default=0.0)
    if not all(map(math.isfinite, shown)) or not (largest == 0 or SMALLEST <= largest <= LARGEST):
        raise SpecError(
            f"{name} must be finite, and 0 or {SMALLEST:g} to {LARGEST:g} in size, got {text(shown)}"
        )


def text(point: Iterable[float]) -> str:
    """'(1, 0.5, 1)'."""
    return "(" + ", ".join(f"{value:.6g}" for value in point) + ")"
