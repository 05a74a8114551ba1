"""The tracer: time per phase, and the individual spans of selected iterations.

`make_tracer` returns the compiled tracer (`_tracer.pyx`, stamps in C) or, if it is not built, the Python
twin below, which is slower. `NullTracer` has the same interface and does nothing.
"""

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from fembench.base.compiled import compiled_module
from fembench.records.phases import NAMES

compiled: Any = compiled_module("fembench.timing._tracer")  # None: use the twin

EVENT = np.dtype([("phase", "i4"), ("iteration", "i4"), ("begin", "f8"), ("end", "f8"), ("message", "i4")])
DEPTH, LEVELS = 16, 32  # most spans open at once; sums by level, 0 for spans of none
Step: TypeAlias = tuple[Any, ...]  # (phase or Traffic, call, …) of a chain
Message: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # (partners, bytes)


class Traffic(NamedTuple):
    """The phase of a step that sends messages or waits for them, with their partners and sizes."""

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
    def ticks(self) -> npt.NDArray[np.int64]: ...
    def level_ticks(self) -> npt.NDArray[np.int64]: ...
    def seconds(self) -> npt.NDArray[np.float64]: ...
    def counts(self) -> npt.NDArray[np.int64]: ...
    def events(self) -> npt.NDArray[Any]: ...


class ReferenceTracer:
    """The compiled tracer's twin, in Python, over any clock: `read() -> ticks`."""

    def __init__(
        self,
        clock_name: str = "perf_counter_ns",
        capacity: int = 0,
        ticks_per_second: float = 1e9,
        read: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.clock_name = clock_name
        self.capacity = max(capacity, 0)
        self.ticks_per_second = ticks_per_second
        self.now = read
        self.recording = False
        self.iteration = -1
        self.message = 0
        self.messages: list[Message] = [((), ())]
        self.level_nodes: tuple[int, ...] = ()
        self._kept: list[tuple[int, int, int, int, int]] = []
        self.reset()
        self.origin = self.now()

    @property
    def depth(self) -> int:
        return len(self._open)

    @property
    def stored(self) -> int:
        return len(self._kept)

    def begin(self, phase: int, /) -> None:
        """Open a span."""
        if not self._known(phase) or len(self._open) == DEPTH or any(phase == p for p, _ in self._open):
            raise self._misuse("begin", phase)
        self._open.append((phase, self.now()))

    def end(self, phase: int, /) -> None:
        """Close the span opened last, which must be of this phase."""
        now = self.now()
        if not self._open or self._open[-1][0] != phase:
            raise self._misuse("end", phase)
        self._keep(phase, self._open.pop()[1], now)

    def enter(self, level: int, phase: int, /) -> None:
        """Close the span of this phase and open another: it and those after it belong to this level."""
        self.end(phase)
        self._level = min(max(level, 0), LEVELS - 1)
        self.begin(phase)

    def add(self, phase: int, begin: int, end: int, /) -> None:
        """Count a span whose ends were read elsewhere with `now()`."""
        if not self._known(phase):
            raise self._misuse("add", phase)
        self._keep(phase, begin, end)

    def _keep(self, phase: int, begin: int, end: int) -> None:
        self._sums[phase] += end - begin
        self._spans[phase] += 1
        self._of_levels[self._level, phase] += end - begin
        if self.recording and len(self._kept) < self.capacity:
            self._kept.append((phase, self.iteration, begin, end, self.message))
        elif self.recording:
            self.dropped += 1

    def reset(self, events: bool = True) -> None:
        """Clear sums, counts and open spans; stored events too unless `events` is false."""
        self._sums = [0] * len(NAMES)
        self._spans = [0] * len(NAMES)
        self._level, self._of_levels = 0, np.zeros((LEVELS, len(NAMES)), np.int64)
        self._open: list[tuple[int, int]] = []
        if events:
            self._kept.clear()
            self.dropped = 0

    def carry(self, partners: Sequence[int], n_bytes: Sequence[int]) -> int:
        """The value of `message` for spans that carry `n_bytes` to or from these ranks."""
        entry = (tuple(partners), tuple(n_bytes))
        if entry not in self.messages:
            self.messages.append(entry)
        return self.messages.index(entry)

    def make_room(self, kept: int, more: int) -> None:
        """Keep only the first `kept` stored spans and make room for `more`; no span counts as dropped."""
        del self._kept[kept:]
        self.capacity = len(self._kept) + more
        self.dropped = 0

    def ticks(self) -> npt.NDArray[np.int64]:
        """(n_phases,) sums of closed spans."""
        return np.array(self._sums, dtype=np.int64)

    def level_ticks(self) -> npt.NDArray[np.int64]:
        """(n_levels, n_phases) sums of closed spans by level of the preconditioner."""
        return self._of_levels[1 : 1 + len(self.level_nodes)].copy()

    def seconds(self) -> npt.NDArray[np.float64]:
        """(n_phases,) sums of closed spans."""
        return np.array(self._sums) / self.ticks_per_second

    def counts(self) -> npt.NDArray[np.int64]:
        """(n_phases,) numbers of closed spans."""
        return np.array(self._spans, dtype=np.int64)

    def events(self) -> npt.NDArray[Any]:
        """(stored,) structured array: phase, iteration, begin, end, message; ordered by end."""
        zero, rate = self.origin, self.ticks_per_second
        rows = [(p, i, (begin - zero) / rate, (end - zero) / rate, m) for p, i, begin, end, m in self._kept]
        return np.array(rows, dtype=EVENT)

    def _known(self, phase: int) -> bool:
        return 0 <= phase < len(NAMES)

    def _misuse(self, call: str, phase: int) -> RuntimeError:
        if not self._known(phase):
            return RuntimeError(f"tracer: {call}({phase}): phases are 0 … {len(NAMES) - 1}")
        inside = [NAMES[p] for p, _ in self._open]
        return RuntimeError(f"tracer: {call}({NAMES[phase]}) does not nest; open spans: {inside or 'none'}")


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
    def ticks(self) -> npt.NDArray[np.int64]:
        return np.zeros(len(NAMES), dtype=np.int64)

    def level_ticks(self) -> npt.NDArray[np.int64]:
        return np.zeros((len(self.level_nodes), len(NAMES)), dtype=np.int64)

    def seconds(self) -> npt.NDArray[np.float64]:
        return np.zeros(len(NAMES))

    def counts(self) -> npt.NDArray[np.int64]:
        return np.zeros(len(NAMES), dtype=np.int64)

    def events(self) -> npt.NDArray[Any]:
        return np.empty(0, dtype=EVENT)


def chain(tracer: Stamps, *steps: Step) -> Callable[[], float | None]:
    """One call that runs many. Each step is (phase, call, …); its calls together form one span of the phase.
    A phase given as `Traffic` adds the messages to the span.

    The call returns the sum of the numbers that its calls return, or None if none returns a number. The
    compiled tracer stamps and calls from C, at half the cost of the same lines in Python.
    """
    carry = getattr(tracer, "carry", NullTracer().carry)
    messages = [carry(*head[1:]) if isinstance(head, Traffic) else 0 for head, *_ in steps]
    plain = [(head.phase if isinstance(head, Traffic) else head, *calls) for head, *calls in steps]
    if compiled is not None and isinstance(tracer, (NullTracer, compiled.Tracer)):
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


# Clocks that Python itself can read; the compiled tracer knows them by the same names.
PYTHON_CLOCKS: dict[str, Callable[[], Callable[[], int]]] = {
    "perf_counter_ns": lambda: time.perf_counter_ns,
    "monotonic_raw": lambda: _monotonic_raw,
    "time_ns": lambda: time.time_ns,
    "thread_time_ns": lambda: time.thread_time_ns,
    "counter": lambda: itertools.count(1).__next__,  # counts its own readings; for tests
}


def _monotonic_raw() -> int:
    identity = getattr(time, "CLOCK_MONOTONIC_RAW", None)
    return time.monotonic_ns() if identity is None else time.clock_gettime_ns(identity)


def make_tracer(
    clock: str = "perf_counter_ns",
    capacity: int = 0,
    ticks_per_second: float = 1e9,
    read: Callable[[], int] | None = None,
) -> TracerLike:
    """A tracer on the named clock; the compiled one if it is built.

    It stores up to `capacity` spans. `ticks_per_second` is 1e9 for every clock except `tsc`, whose rate
    comes from its certificate. `read` reads a clock that only the caller knows (`mpi_wtime`).
    Raises ValueError for a clock that cannot be read here.
    """
    if compiled is not None and clock in compiled.CODES:
        return compiled.Tracer(clock, capacity, ticks_per_second)
    reader = PYTHON_CLOCKS[clock]() if clock in PYTHON_CLOCKS else read
    if reader is None:
        raise ValueError(f"no clock {clock!r} here; known: {', '.join(PYTHON_CLOCKS)}")
    return ReferenceTracer(clock, capacity, ticks_per_second, reader)


class span:
    """`with span(tracer, READ): …` for set-up code; loops call begin and end.

    It is a class because a generator-based context manager adds 10 microseconds outside any phase.
    """

    __slots__ = ("_phase", "_tracer")

    def __init__(self, tracer: TracerLike, phase: int) -> None:
        self._tracer, self._phase = tracer, phase

    def __enter__(self) -> None:
        self._tracer.begin(self._phase)

    def __exit__(self, *error: object) -> None:
        self._tracer.end(self._phase)
