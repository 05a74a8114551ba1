"""Emulated speeds and hot spots as users write them (SYNTHETIC).

speeds      "1,1,0.5,0.25"; "100:1,0.33,1,1" if they change; "1,0.85,1:0.7" for nodes
hot spots   "100:0-3x3;300:4-7x3"
"""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from fembench.base.errors import InputError, shown
from fembench.base.units import plural
from fembench.records.case_fields import CaseSynthetic

LEARN, LEARNT = 5.0, 40  # maximum seconds and sets of the rehearsal of emulated ranks
SLOWEST = 1e-6  # a millionth: slower ranks would not end
AS_IN = "such as 1,1,0.5,0.25, where the fastest rank has 1"


class Change(NamedTuple):
    """From iteration `at` of every solve on, the ranks have these speeds."""

    at: int
    speeds: tuple[float, ...]


def parse_speeds(text: str, ranks: int) -> tuple[float, ...]:
    """(ranks,) speeds of SLOWEST to 1 from "1,1,0.5,0.25"; all 1 for "". Raises InputError."""
    if not text:
        return (1.0,) * ranks
    try:
        speeds = tuple(float(word) for word in text.split(","))
    except ValueError:
        raise InputError(f"emulate '{shown(text)}': expected speeds {AS_IN}") from None
    if len(speeds) != ranks:
        raise InputError(
            f"emulate '{shown(text)}': {plural(len(speeds), 'speed')} for {plural(ranks, 'rank')}"
        )
    if not all(SLOWEST <= s <= 1 for s in speeds):
        raise InputError(f"emulate '{shown(text)}': expected speeds from {SLOWEST:g} to 1, {AS_IN}")
    return speeds


def parse_changes(text: str, start: tuple[float, ...]) -> tuple[Change, ...]:
    """The changes in order of iteration, the first one `start` at 0; () for "".

    Raises InputError.
    """
    found = by_iteration(text, "emulate_change", "ITERATION:SPEEDS, as in 100:1,0.33")
    changes = sorted(Change(at, parse_speeds(speeds, len(start))) for at, speeds in found)
    return (Change(0, start), *changes) if changes else ()


def by_iteration(text: str, field: str, form: str) -> Iterator[tuple[int, str]]:
    """(iteration, what holds from there) of "100:…;300:…". Raises InputError."""
    seen: set[int] = set()
    for word in filter(None, text.split(";")):
        at, colon, what = word.strip().partition(":")
        if not re.fullmatch(r"[0-9]{1,9}\s*", at) or not colon:
            raise InputError(f"{field} '{shown(text)}': expected {form}")
        if int(at) in seen:
            raise InputError(f"{field} '{shown(text)}': iteration {int(at)} is given twice")
        seen.add(int(at))
        yield int(at), what.strip()


class NodeSpeed(NamedTuple):
    """An emulated node, relative to one at full speed."""

    cores: float = 1.0  # speed of every core, with data in cache
    memory: float = 1.0  # memory bandwidth
    load: float = 0.0  # fraction of the time that another load takes


def parse_nodes(text: str) -> tuple[NodeSpeed, ...]:
    """The emulated nodes in "1,0.85,1:0.7,1:1:0.3": SPEED[:MEMORY[:LOAD]] each.

    MEMORY is the speed of the cores if it is not given. Raises InputError.
    """
    return tuple(_node_speed(word, text) for word in text.split(","))


def _node_speed(word: str, text: str) -> NodeSpeed:
    try:
        numbers = [float(part) for part in word.split(":")]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        numbers *= 2
    node = NodeSpeed(*numbers) if len(numbers) in (2, 3) else NodeSpeed(0.0)
    if not (SLOWEST <= node.cores <= 1 and SLOWEST <= node.memory <= 1 and 0 <= node.load < 1):
        raise InputError(
            f"emulate '{shown(text)}': cannot read '{shown(word)}'; expected SPEED[:MEMORY[:LOAD]], speeds "
            f"from {SLOWEST:g} to 1, a load below 1, as in 1,0.85,1:0.7,1:1:0.3"
        )
    return node


def label(emulate: str, dilate: float) -> str:
    """How a record describes emulated slowness; "" if there is none."""
    words = [f"emulated speeds {emulate}"] if emulate else []
    words += [f"dilated {dilate:g} times"] if dilate != 1 else []
    return ", ".join(words)


def slowness_text(given: CaseSynthetic, hosts: str) -> str:
    """How a record describes emulated ranks, on `hosts` described so; "": real ones."""
    words = [hosts, label(given.emulate, given.dilate)]
    words += [f"changing {given.emulate_change}"] if given.emulate_change else []
    words += [f"hot spot {given.hot_spot}"] if given.hot_spot else []
    return ", ".join(filter(None, words))


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
        first = int(match[1])
        last = int(match[2] or match[1])
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
