"""Sizes of the arrays by which memory is measured."""

from collections.abc import Sequence

BLOCK_BYTES = 40  # of the symmetric matrix, for each block of the whole stiffness
SMALLEST = 1 << 14  # bytes; below this, the call costs more than the memory access
MODEST = 1 << 25  # bytes at most


def triad_bytes(blocks: Sequence[int]) -> int:
    """Bytes of each rank's arrays, as large as the mean matrix."""
    return clamped(BLOCK_BYTES * sum(blocks) / len(blocks))


def clamped(n_bytes: float) -> int:
    """The nearest size that is measured."""
    return int(min(max(n_bytes, SMALLEST), MODEST))
