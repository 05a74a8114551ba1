"""The steps of which an iteration, or an application of a preconditioner, is declared.

A pass over vectors names what it reads and writes by the letters of the solver's
docstring. Each vector counts once per pass that touches it, as if nothing stayed in a
cache. Fetches before an overwrite are not counted, nor are the weights and messages of
the interface. M is the stored M^-1, which may be larger than a vector.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from fembench.methods.work import DOUBLE, Work


@dataclass(frozen=True)
class StoredInverse:
    """M^-1 as memory holds it, per entry of a vector."""

    numbers: int = 0  # 0: nothing is stored
    flops: int = 0  # of one application


@dataclass(frozen=True)
class Pass:
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


@dataclass(frozen=True)
class Multiplication:
    """q = A d, summed over neighbours."""

    dot: bool = False  # <d, q> too: in the product if the storage can


@dataclass(frozen=True)
class Application:
    """z = M^-1 r, where M^-1 is not folded into the passes."""


@dataclass(frozen=True)
class Reduction:
    """An all-reduce, at once or in two halves with other steps between them."""

    numbers: int
    part: Literal["whole", "begin", "end"] = "whole"


@dataclass(frozen=True)
class Gathering:
    """An all-gather."""

    numbers: int  # per rank


@dataclass(frozen=True)
class CoarseCorrection:
    """The same application on the grid below."""


Step: TypeAlias = Pass | Multiplication | Application | Reduction | Gathering | CoarseCorrection
