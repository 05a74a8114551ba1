"""Flops and bytes of memory traffic, of one iteration or of a part of it."""

from __future__ import annotations

from msgspec import Struct

DOUBLE = 8  # bytes


class Work(Struct, frozen=True):
    """Counts of one part of an iteration: of all of it, or per entry of a vector."""

    flops: float = 0
    bytes: float = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.flops + other.flops, self.bytes + other.bytes)

    def __mul__(self, times: float) -> Work:
        return Work(self.flops * times, self.bytes * times)

    @property
    def vectors(self) -> float:
        """Vectors read and written, where the counts are per entry."""
        return self.bytes / DOUBLE


NO_WORK = Work()
