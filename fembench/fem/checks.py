"""Checks that the structs of a problem share."""

import math
from collections.abc import Iterable

from fembench.base.errors import InputError

Vector = tuple[float, float, float]


class SpecError(InputError, ValueError):
    """A value of a problem is out of range; as a ValueError, msgspec adds the place in the file."""


def finite(name: str, values: Iterable[float]) -> None:
    """Raise SpecError unless all values are finite numbers."""
    shown = tuple(values)
    if not all(map(math.isfinite, shown)):
        raise SpecError(f"{name} must be finite, got {text(shown)}")


def text(point: Iterable[float]) -> str:
    """'(1, 0.5, 1)'."""
    return "(" + ", ".join(f"{value:.6g}" for value in point) + ")"
