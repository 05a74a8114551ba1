"""What a walk through a compiled program is told, keeps in mind and finds."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from fembench.model.graph import Event
from fembench_studies.binaries.blocks import Function, Vertex
from fembench_studies.binaries.emulator import BranchTest, Value
from fembench_studies.binaries.flow import Flow, NaturalLoop
from fembench_studies.binaries.image import Image

Key = tuple[
    str, int | str
]  # ("block", address), ("turns", header), ("entries", header), ("call", function), …
Counts = dict[Key, float]


class Loops(NamedTuple):
    """The distribution of the number of iterations of a loop that the program does not fix."""

    mean: float
    limit: int
    cut: bool = False  # whether `mean` is that of the numbers drawn, after the limit has cut some

    def turns(self, rng: np.random.Generator) -> int:
        """A number of iterations, at most `limit`; drawn at each entry of a loop."""
        if self.mean >= self.limit:
            return self.limit
        scale = _scale(self.mean, self.limit) if self.cut else self.mean
        return int(min(self.limit, round(rng.exponential(scale))))


@lru_cache
def _scale(mean: float, limit: int) -> float:
    """The mean of the exponential distribution which, cut at the limit, has this mean."""
    low, high = mean, mean
    while high * -math.expm1(-limit / high) < mean and high < 1e6 * limit:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * -math.expm1(-limit / middle) < mean else (low, middle)
    return high


@dataclass(frozen=True)
class Given:
    """What the program does not tell, and somebody has stated or counted."""

    loops: Loops | None = None  # all loops that are not in `each`
    each: Mapping[int, Loops] = field(default_factory=dict)  # header -> distribution
    branches: Mapping[int, float] = field(default_factory=dict)  # branch -> probability that it is taken
    calls: Mapping[str, float] = field(default_factory=dict)  # function of a library -> seconds
    m: int | None = None  # bytes of messages of unknown size
    arguments: tuple[str, ...] = ()  # of the program
    counted: frozenset[int] = frozenset()  # loops and branches of which a run told
    rehearsed: bool = False  # a rehearsal tells the time: calls need no cost


class Program(Protocol):
    """What a walk needs to know about an executable."""

    image: Image
    entry: Function
    by_start: dict[int, Function]
    called: frozenset[str]  # functions of libraries

    def flow(self, function: Function) -> Flow: ...
    def steps(self, v: Vertex) -> tuple: ...
    def around(self, address: int) -> Function | None: ...


class LoopTurn(NamedTuple):
    """What happened in one iteration of a loop."""

    tests: list[tuple[int, BranchTest]]
    counts: Counts
    quiet: bool  # without messages
    drew: bool  # with random numbers
    registers: dict[str, Value | None]
    cells: dict[int, tuple[int, Value | None]]  # written
    fresh: list[int]  # addresses that no iteration before had written


@dataclass
class Activation:
    """A loop that is being executed."""

    loop: NaturalLoop
    depth: int  # of calls
    turns: int = 0  # edges back to the header so far
    draw: int | None = None  # iterations drawn
    tests: list[tuple[int, BranchTest]] = field(default_factory=list)
    counts: Counts = field(default_factory=dict)  # of this iteration
    before: Counts = field(default_factory=dict)  # of those before it
    written: dict[int, int] = field(default_factory=dict)  # address -> width, in this iteration
    quiet: bool = True
    drew: bool = False
    last: list[LoopTurn] = field(default_factory=list)
    sampled: int = 0  # quiet iterations in a row
    total: Counts = field(default_factory=dict)  # of those
    touched: dict[int, int] = field(default_factory=dict)  # written by all


@dataclass
class Point:
    """What is known about a loop, over all its executions by a process."""

    function: str
    least: float = math.inf
    most: float = 0
    exits: set[str] = field(default_factory=set)  # "known", "drawn"
    bound: float = math.inf  # iterations after which a known test ends it
    limited: int = 0  # executions that reached the limit of their distribution


class Message(NamedTuple):
    """A passage of a communication point."""

    function: str
    address: int
    name: str
    event: Event
    callers: tuple[tuple[str, int], ...]  # function, address of the calls that lead here


@dataclass
class Walk:
    """What a process did."""

    rank: int
    parts: list[Counts | Event] = field(default_factory=list)  # computing and events, in order
    totals: Counter[Key] = field(default_factory=Counter)
    messages: list[Message] = field(default_factory=list)
    loops: dict[int, Point] = field(default_factory=dict)  # by header
    decisions: dict[int, set[bool]] = field(default_factory=dict)  # branch on the rank -> taken
    unknown: dict[int, str] = field(default_factory=dict)  # branch drawn -> function
    exits: set[int] = field(default_factory=set)  # branches by which a drawn loop may be left
    drawn: int = 0  # random numbers
