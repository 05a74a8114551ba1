"""Flops and bytes of one iteration beside the product, counted pass by pass.

A pass reads or writes whole vectors of n doubles; each is counted once for every pass that touches it, as
if nothing stayed in a cache. What a cache fetches before it overwrites is not counted, nor are the
weights and messages of the interface.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """Of one iteration, or of a part of it."""

    flops: int = 0
    bytes: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.flops + other.flops, self.bytes + other.bytes)

    def __mul__(self, times: int) -> Work:
        return Work(self.flops * times, self.bytes * times)


def passes(n: int, vectors: int, flops: int) -> Work:
    """Of `vectors` vectors of n doubles read or written, and `flops` for each entry."""
    return Work(flops * n, 8 * n * vectors)


def dot(n: int) -> Work:
    """An inner product in a pass of its own."""
    return passes(n, 2, 2)


def folded_in(n: int, inverse_size: int | None) -> Work:
    """Once through D^-1, whose vectors the pass touches anyhow; inverse_size n, 2 n (blocks) or None."""
    if inverse_size is None:
        return Work()
    return Work(n if inverse_size == n else 5 * n, 8 * inverse_size)
