"""Tasks of a farm dealt to workers by their relative speeds (Herai 2005, Eq. 3.6)."""

import math
from collections.abc import Sequence

from fembench.errors import InputError


def deal_tasks(factors: Sequence[float], tasks: int, static: float = 1.0) -> tuple[int, ...]:
    """Tasks per worker (Eq. 3.6), rounded by largest remainders to a
    sum of floor(static x tasks).

    Raises InputError.
    """
    if not factors or not all(0 < w < math.inf for w in factors):
        raise InputError(f"factors {list(factors)}: expected numbers above 0")
    if tasks < 0 or not 0 <= static <= 1:
        raise InputError(
            f"{tasks} tasks, static fraction {static}: expected 0 or more tasks, a fraction of 0 to 1"
        )
    whole = math.floor(static * tasks + 1e-9)
    ideal = [whole * w / sum(factors) for w in factors]
    dealt = [math.floor(x) for x in ideal]
    by_remainder = sorted(range(len(ideal)), key=lambda i: (dealt[i] - ideal[i], i))
    for i in by_remainder[: whole - sum(dealt)]:
        dealt[i] += 1
    return tuple(dealt)
