"""A tracer that reports spans and iterations as they come: emulated slowness acts inside the spans."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fembench.timing.tracer import Message, TracerLike

Hear = Callable[[int], None]


class HeardTracer:
    """`tracer`, calling `begun(phase)` after the stamp that opens a span, `ending(phase)` before the stamp
    that closes it, and `reached(iteration)` when the iteration is set. What these calls take belongs to the
    span."""

    def __init__(self, tracer: TracerLike, begun: Hear, ending: Hear, reached: Hear) -> None:
        self._tracer, self._begun, self._ending, self._reached = tracer, begun, ending, reached

    def begin(self, phase: int, /) -> None:
        """Open a span."""
        self._tracer.begin(phase)
        self._begun(phase)

    def end(self, phase: int, /) -> None:
        """Close the span opened last, which must be of this phase."""
        self._ending(phase)
        self._tracer.end(phase)

    @property
    def iteration(self) -> int:
        return self._tracer.iteration

    @iteration.setter
    def iteration(self, value: int) -> None:
        self._tracer.iteration = value
        self._reached(value)

    @property
    def recording(self) -> bool:
        return self._tracer.recording

    @recording.setter
    def recording(self, value: bool) -> None:
        self._tracer.recording = value

    @property
    def message(self) -> int:
        return self._tracer.message

    @message.setter
    def message(self, value: int) -> None:
        self._tracer.message = value

    @property
    def origin(self) -> int:
        return self._tracer.origin

    @origin.setter
    def origin(self, value: int) -> None:
        self._tracer.origin = value

    @property
    def ticks_per_second(self) -> float:
        return self._tracer.ticks_per_second

    @ticks_per_second.setter
    def ticks_per_second(self, value: float) -> None:
        self._tracer.ticks_per_second = value

    @property
    def clock_name(self) -> str:
        return self._tracer.clock_name

    @property
    def messages(self) -> list[Message]:
        return self._tracer.messages

    @property
    def capacity(self) -> int:
        return self._tracer.capacity

    @property
    def stored(self) -> int:
        return self._tracer.stored

    @property
    def dropped(self) -> int:
        return self._tracer.dropped

    @property
    def depth(self) -> int:
        return self._tracer.depth

    def now(self) -> int:
        return self._tracer.now()

    def add(self, phase: int, begin: int, end: int, /) -> None:
        self._tracer.add(phase, begin, end)

    def reset(self, events: bool = True) -> None:
        self._tracer.reset(events)

    def carry(self, partners: Sequence[int], n_bytes: Sequence[int]) -> int:
        return self._tracer.carry(partners, n_bytes)

    def make_room(self, kept: int, more: int) -> None:
        self._tracer.make_room(kept, more)

    def ticks(self) -> npt.NDArray[np.int64]:
        return self._tracer.ticks()

    def seconds(self) -> npt.NDArray[np.float64]:
        return self._tracer.seconds()

    def counts(self) -> npt.NDArray[np.int64]:
        return self._tracer.counts()

    def events(self) -> npt.NDArray[Any]:
        return self._tracer.events()
