"""A tracer that reports spans as they come: emulated slowness acts inside them."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from fembench.timing.tracer import TracerLike

Hear = Callable[[int], None]


def _inner(name: str) -> Any:
    """An attribute of the tracer inside."""
    return property(attrgetter(f"_tracer.{name}"), lambda self, value: setattr(self._tracer, name, value))


class HeardTracer:
    """`tracer`, with calls where spans begin and end, which belong to the spans.

    `begun(phase)` after the stamp that opens one, `ending(phase)` before the stamp that
    closes it, and `reached(iteration)` when the iteration is set.
    """

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

    def enter(self, level: int, phase: int, /) -> None:
        """Close a span of this phase, and open one of the level."""
        self._ending(phase)
        self._tracer.enter(level, phase)
        self._begun(phase)

    @property
    def iteration(self) -> int:
        return self._tracer.iteration

    @iteration.setter
    def iteration(self, value: int) -> None:
        self._tracer.iteration = value
        self._reached(value)

    recording, message, messages, origin = map(_inner, ("recording", "message", "messages", "origin"))
    clock_name, ticks_per_second, now = map(_inner, ("clock_name", "ticks_per_second", "now"))
    capacity, stored, dropped, depth = map(_inner, ("capacity", "stored", "dropped", "depth"))
    level_nodes, level_ticks = map(_inner, ("level_nodes", "level_ticks"))
    add, reset, carry, make_room = map(_inner, ("add", "reset", "carry", "make_room"))
    ticks, seconds, counts, events = map(_inner, ("ticks", "seconds", "counts", "events"))
