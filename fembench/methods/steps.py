"""The steps of which an iteration, or an application of a preconditioner, is declared.

Their work is flops and bytes of memory traffic. A pass over vectors names what it reads
and writes by the letters of the solver's docstring. Each vector counts once per pass that
touches it, as if nothing stayed in a cache. Fetches before an overwrite are not counted,
nor are the weights and messages of the interface. M is the stored M^-1, which may be
larger than a vector.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

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


class StoredInverse(Struct, frozen=True):
    """M^-1 as memory holds it, per entry of a vector."""

    numbers: int = 0  # 0: nothing is stored
    flops: int = 0  # of one application


class Pass(Struct, frozen=True):
    """One pass over vectors: an update, or an inner product if nothing is written."""

    reads: str  # letters: "x r d q"
    writes: str = ""
    flops: int = 0  # per entry, those of M^-1 apart
    applied: int = 1  # times each entry is multiplied by M^-1, where M is read
    more: float = 0.0  # numbers read per entry of what is no vector

    def work(self, inverse: StoredInverse) -> Work:
        """Per entry of a vector."""
        letters = [*self.reads.split(), *self.writes.split()]
        stored = letters.count("M")
        numbers = len(letters) - stored + stored * inverse.numbers
        return Work(
            self.flops + (self.applied * inverse.flops if stored else 0), DOUBLE * (numbers + self.more)
        )


class Multiplication(Struct, frozen=True):
    """q = A d, summed over neighbours."""

    dot: bool = False  # <d, q> too: in the product if the storage can


class Application(Struct, frozen=True):
    """z = M^-1 r, where M^-1 is not folded into the passes."""


class Reduction(Struct, frozen=True):
    """An all-reduce, at once or in two halves with other steps between them."""

    numbers: int
    part: Literal["whole", "begin", "end"] = "whole"


class Gathering(Struct, frozen=True):
    """An all-gather."""

    numbers: int  # per rank


class CoarseCorrection(Struct, frozen=True):
    """The same application on the grid below."""


Step: TypeAlias = Pass | Multiplication | Application | Reduction | Gathering | CoarseCorrection
