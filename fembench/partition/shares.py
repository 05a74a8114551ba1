"""Target shares: the fraction of the cells for each rank.

"7:1"     "2,1,1"     "8*1" (eight equal ones)     "2*1,3" (1, 1, 3)     "" (equal)
"""

import math
import re
from collections.abc import Sequence

from fembench.base.errors import InputError, shown
from fembench.base.units import plural

LARGEST_COUNT = 1_000_000  # ranks; a longer list is a typing error
SMALLEST = 1e-9  # of the largest share: no mesh has a cell for less


def parse_shares(text: str, ranks: int | None = None) -> tuple[float, ...]:
    """One share per rank, in the order of ranks, summing to 1. Raises InputError.

    ranks: their number; None: as many as the text names
    """
    if ranks is not None and not 1 <= ranks <= LARGEST_COUNT:
        raise InputError(f"shares for {plural(ranks, 'rank')}; expected 1 to {LARGEST_COUNT}")
    if ranks and not text.strip():
        return (1.0 / ranks,) * ranks
    weights: list[float] = []
    for word in re.split(r"[:,]", text):
        count, weight = _weight(word.strip(), text)
        if len(weights) + count > LARGEST_COUNT:
            most = f"more than {LARGEST_COUNT} ranks; expected {ranks or 'fewer'}"
            raise InputError(f"shares '{shown(text)}' name {most}")
        weights += [weight] * count
    if ranks and len(weights) != ranks:
        raise InputError(f"shares '{shown(text)}' name {plural(len(weights), 'rank')}; expected {ranks}")
    return normalise(weights)


def shares_text(shares: Sequence[float] | str) -> str:
    """Shares as text, '2,1'; text as it is."""
    return shares if isinstance(shares, str) else ",".join(f"{share:.12g}" for share in shares)


def normalise(weights: Sequence[float]) -> tuple[float, ...]:
    """Weights scaled to sum to 1. Raises InputError unless all are positive and finite."""
    if not weights:
        raise InputError("no shares; expected one positive number per part")
    for weight in weights:
        if not (math.isfinite(weight) and weight > 0):
            raise InputError(f"share {weight:g}; expected positive finite numbers")
    largest = max(weights)  # first by the largest, so that no sum overflows
    if min(weights) < SMALLEST * largest:
        raise InputError(
            f"shares from {min(weights):g} to {largest:g}; expected at least {SMALLEST:g} of the largest"
        )
    total = math.fsum(w / largest for w in weights)
    return tuple(w / largest / total for w in weights)


def _weight(word: str, text: str) -> tuple[int, float]:
    """(how often, the weight) of one word: '3' or '8*1'."""
    count, star, value = word.rpartition("*")
    try:
        weight = float(value)
        times = int(count) if star else 1
    except ValueError:
        raise InputError(
            f"shares '{shown(text)}': cannot read '{shown(word)}'; expected numbers as in 7:1, 2,1,1 or 8*1"
        ) from None
    if times < 1:
        raise InputError(
            f"shares '{shown(text)}': '{shown(word)}' repeats {times} times; expected at least once"
        )
    if not (math.isfinite(weight) and weight > 0):
        raise InputError(f"shares '{shown(text)}': share {value}; expected positive finite numbers")
    return times, weight
