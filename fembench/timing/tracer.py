"""The tracer: time per phase, and the individual spans of selected iterations.

`make_tracer` returns the compiled tracer (`_tracer.pyx`), which stamps in C.
`NullTracer` has the same interface and does nothing.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from fembench.base.arrays import F64, I64
from fembench.base.errors import InputError
from fembench.base.plugins import compiled_module
from fembench.records.phases import NAMES

compiled: Any = compiled_module("fembench.timing._tracer")  # None: not built; `make_tracer` refuses

EVENT = np.dtype([("phase", "i4"), ("iteration", "i4"), ("begin", "f8"), ("end", "f8"), ("message", "i4")])
Step: TypeAlias = tuple[Any, ...]  # (phase or Traffic, call, …) of a chain
Message: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # (partners, bytes)


class Traffic(NamedTuple):
    """The phase of a step that sends or awaits messages, with partners and sizes."""

    phase: int
    partners: tuple[int, ...]  # ranks; empty: all ranks together
    n_bytes: tuple[int, ...]  # to or from each partner; one number for an all-reduce


class Stamps(Protocol):
    """The part of a tracer that stamps use."""

    message: int  # messages of the span that ends next: a number from `carry`
    level_nodes: tuple[int, ...]  # mesh nodes of the levels 1, 2, … of the preconditioner

    def begin(self, phase: int, /) -> None: ...
    def end(self, phase: int, /) -> None: ...
    def enter(self, level: int, phase: int, /) -> None: ...


class TracerLike(Stamps, Protocol):
    """The interface of every tracer; `compiled.Tracer` documents it."""

    recording: bool
    iteration: int
    origin: int
    ticks_per_second: float

    @property
    def clock_name(self) -> str: ...
    @property
    def messages(self) -> list[Message]: ...
    @property
    def capacity(self) -> int: ...
    @property
    def stored(self) -> int: ...
    @property
    def dropped(self) -> int: ...
    @property
    def depth(self) -> int: ...
    def now(self) -> int: ...
    def add(self, phase: int, begin: int, end: int, /) -> None: ...
    def reset(self, events: bool = True) -> None: ...
    def carry(self, partners: Sequence[int], n_bytes: Sequence[int]) -> int: ...
    def make_room(self, kept: int, more: int) -> None: ...
    def ticks(self) -> I64: ...
    def level_ticks(self) -> I64: ...
    def seconds(self) -> F64: ...
    def counts(self) -> I64: ...
    def events(self) -> npt.NDArray[Any]: ...


class NullTracer:
    """Same interface, measures nothing."""

    recording, iteration, message = False, -1, 0
    ticks_per_second, clock_name = 1e9, "none"
    origin = capacity = stored = dropped = depth = 0

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.level_nodes: tuple[int, ...] = ()

    def carry(self, partners: Sequence[int], n_bytes: Sequence[int]) -> int:
        return 0

    def make_room(self, kept: int, more: int) -> None: ...
    def now(self) -> int:
        return 0

    def begin(self, phase: int, /) -> None: ...
    def end(self, phase: int, /) -> None: ...
    def enter(self, level: int, phase: int, /) -> None: ...
    def add(self, phase: int, begin: int, end: int, /) -> None: ...
    def reset(self, events: bool = True) -> None: ...
    def ticks(self) -> I64:
        return np.zeros(len(NAMES), dtype=np.int64)

    def level_ticks(self) -> I64:
        return np.zeros((len(self.level_nodes), len(NAMES)), dtype=np.int64)

    def seconds(self) -> F64:
        return np.zeros(len(NAMES))

    def counts(self) -> I64:
        return np.zeros(len(NAMES), dtype=np.int64)

    def events(self) -> npt.NDArray[Any]:
        return np.empty(0, dtype=EVENT)


def chain(tracer: Stamps, *steps: Step) -> Callable[[], float | None]:
    """One call that runs many.

    Each step is (phase, call, …); its calls together form one span of the phase. A
    phase given as `Traffic` adds the messages to the span.

    The call returns the sum of the numbers that its calls return, or None if none
    returns a number. The compiled tracer stamps and calls from C, at half the cost
    of the same lines in Python.
    """
    carry = getattr(tracer, "carry", NullTracer().carry)
    messages = [carry(*head[1:]) if isinstance(head, Traffic) else 0 for head, *_ in steps]
    plain = [(head.phase if isinstance(head, Traffic) else head, *calls) for head, *calls in steps]
    if isinstance(tracer, (NullTracer, compiled.Tracer)):
        return compiled.Chain(None if isinstance(tracer, NullTracer) else tracer, plain, messages).run
    begin, end = tracer.begin, tracer.end

    def run() -> float | None:
        numbers = []
        for message, (phase, *calls) in zip(messages, plain):
            begin(phase)
            numbers += [value for call in calls if (value := call()) is not None]
            if message:
                tracer.message = message
            end(phase)
            if message:
                tracer.message = 0
        return sum(numbers) if numbers else None

    return run


def make_tracer(
    clock: str = "perf_counter_ns", capacity: int = 0, ticks_per_second: float = 1e9
) -> TracerLike:
    """A tracer on the named clock, for up to `capacity` stored spans.

    `ticks_per_second` is 1e9 for every clock except `tsc`, whose rate comes from its
    certificate. Raises InputError if the tracer is not compiled, ValueError for a
    clock that cannot be read here.
    """
    if compiled is None:
        raise InputError(
            "the tracer is not compiled, and nothing is measured without it: install fembench again"
        )
    return compiled.Tracer(clock, capacity, ticks_per_second)


class span:
    """`with span(tracer, READ): …` for set-up code; loops call begin and end.

    A class, because a generator-based context manager adds 10 µs outside any phase.
    """

    __slots__ = ("_phase", "_tracer")

    def __init__(self, tracer: TracerLike, phase: int) -> None:
        self._tracer = tracer
        self._phase = phase

    def __enter__(self) -> None:
        self._tracer.begin(self._phase)

    def __exit__(self, *error: object) -> None:
        self._tracer.end(self._phase)
