"""Emulated hot spots as users write them: "100:0-3x3;300:4-7x3" (SYNTHETIC)."""

import math
import re
from typing import NamedTuple

from fembench.base.errors import InputError, shown
from fembench.synthetic.speeds import by_iteration

_BLOCKS = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?x([0-9.]{1,12})")


class HotSpot(NamedTuple):
    """From iteration `at` of every solve on, the blocks cost these multiples of their work."""

    at: int
    weights: tuple[float, ...]  # [block]


def parse_hot_spots(text: str, n_blocks: int) -> tuple[HotSpot, ...]:
    """The hot spots in order of iteration; () if the text is empty. Raises InputError."""
    found = by_iteration(text, "hot_spot", "ITERATION:BLOCKSxWEIGHT, as in 100:0-3x3")
    return tuple(sorted(HotSpot(at, _weights(blocks, n_blocks, text)) for at, blocks in found))


def _weights(blocks: str, n_blocks: int, text: str) -> tuple[float, ...]:
    weights = [1.0] * n_blocks
    for word in blocks.split(","):
        match = _BLOCKS.fullmatch(word)
        weight = _number(match[3]) if match else math.nan
        if match is None or not 1 <= weight < math.inf:
            raise InputError(
                f"hot_spot '{shown(text)}': cannot read '{shown(word)}'; expected blocks and a weight of at "
                "least 1, as in 0-3x2.5"
            )
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < n_blocks:
            raise InputError(
                f"hot_spot '{shown(text)}': no blocks {shown(word)}; expected blocks from 0 to {n_blocks - 1}"
            )
        weights[first : last + 1] = [weight] * (last + 1 - first)
    return tuple(weights)


def _number(text: str) -> float:
    """nan for what is no number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def weights_at(spots: tuple[HotSpot, ...], iteration: int, n_blocks: int) -> tuple[float, ...]:
    """[block] what a block costs in an iteration, as a multiple of its work."""
    return next((s.weights for s in reversed(spots) if s.at <= iteration), (1.0,) * n_blocks)
