"""Waiting until a given moment, to within a microsecond; a tracer inside whose spans to wait.

A wait is asleep or spinning. Moments are readings of time.perf_counter_ns. The tracer
reports spans as they come: emulated slowness acts inside them.
"""

import ctypes
import sys
import time
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from fembench.timing.tracer import TracerLike

SPIN = 30_000  # ns before the end at which sleeping becomes too coarse and the rank spins
GLANCES = 200  # readings of the processor clock, of which the cheapest counts
PR_SET_TIMERSLACK, PR_GET_TIMERSLACK = 29, 30  # linux/prctl.h
FINE = 1  # ns by which a sleep may end late
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def glance_at_clock() -> int:
    """Processor time in ns that one reading of the processor clock takes, the least of many.

    Stretched a hundred times, it would be a tenth of an iteration.
    """
    return min(-(time.thread_time_ns() - time.thread_time_ns()) for _ in range(GLANCES))


def timer_slack(slack: int) -> int:
    """Let this thread's sleeps end up to `slack` ns late; the slack before, 0: no Linux.

    Linux's default is 50 microseconds, to save power.
    """
    if _prctl is None:
        return 0
    before = int(_prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0))
    _prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0)
    return before


def sleep_until(moment: int) -> None:
    """Give the processor away until `moment`, spinning over the last 30 microseconds.

    The thread's other sleeps stay as coarse as they are: ranks that wait for messages
    take naps, and more frequent naps take more processor time from ranks that compute.
    """
    left = moment - time.perf_counter_ns()
    if left > SPIN:
        before = timer_slack(FINE)
        time.sleep((left - SPIN) * 1e-9)
        timer_slack(before)
    spin_until(moment)


def spin_until(moment: int) -> None:
    """Keep the processor busy until `moment`."""
    while time.perf_counter_ns() < moment:
        pass


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
        self._tracer = tracer
        self._begun = begun
        self._ending = ending
        self._reached = reached

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
