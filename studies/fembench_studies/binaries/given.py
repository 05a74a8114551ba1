"""What is stated about a program: costs, iterations of loops, and how often branches are taken.

A rehearsal needs none of it; the source's method (`static`) draws and sums up from it. The file is JSON:
`trace --count FILE` writes one, which can be edited. Addresses are hexadecimal, as objdump prints them.
"""

import math
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from fembench.base.config import json_text, read_json, read_toml
from fembench.base.files import write_atomic
from fembench.errors import InputError

_ASSUMED = read_toml(Path(__file__).with_name("assumed.toml"), dict[str, dict[str, float]])
COSTS, COMMON = (
    _ASSUMED["costs"],
    _ASSUMED["calls"],
)  # class of instructions, function of a library -> seconds


class Loops(NamedTuple):
    """The distribution of the number of iterations of a loop: exponential, cut at its limit."""

    mean: float
    limit: int

    def turns(self, rng: np.random.Generator) -> int:
        """A number of iterations, up to the limit; exactly that if the mean is not below it (Section 3.7)."""
        if self.mean >= self.limit:
            return self.limit
        return int(min(self.limit, round(rng.exponential(self.mean))))


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a file of --given."""

    costs: dict[str, float] = msgspec.field(
        default_factory=lambda: dict(COSTS)
    )  # class of instructions -> seconds
    calls: dict[str, float] = {}  # function of a library -> seconds, beside the common ones
    loops: dict[str, Loops] = {}  # where a loop is entered -> iterations
    loop: Loops | None = None  # of all other loops
    branches: dict[str, float] = {}  # branch -> probability that it is taken; 0.5 for all others
    bytes: int | None = None  # of every message
    program: str = ""  # SHA-256 of the executable to which addresses belong; '': not checked


def load_given(path: Path | str) -> Given:
    """What a file states. Raises InputError."""
    found = read_json(path, Given)
    missing = [name for name in COSTS if not found.costs.get(name, 0) > 0]
    if missing:
        raise InputError(f"{path}: no cost of {', '.join(missing)}; expected positive seconds of every class")
    wrong = [name for name, cost in found.calls.items() if not 0 <= cost < math.inf]
    if wrong:
        raise InputError(f"{path}: calls of {wrong[0]}: expected seconds of 0 or more")
    every = {**found.loops, **({"loop": found.loop} if found.loop else {})}
    wrong = [name for name, loops in every.items() if not (loops.mean >= 0 and loops.limit >= 1)]
    if wrong:
        raise InputError(f"{path}: loop {wrong[0]}: expected [MEAN, LIMIT] with a limit of at least 1")
    wrong = [name for name, p in found.branches.items() if not 0 <= p <= 1]
    if wrong:
        raise InputError(f"{path}: branch {wrong[0]}: expected a probability, 0 to 1")
    return found


def save_given(given: Given, path: Path | str) -> None:
    """Write what is stated, as JSON."""
    write_atomic(path, json_text(given))
